//! What a distributed database says when one of its nodes is away.

use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// Whether what the server could not do is to reach another node: a statement has failed then, and the session goes on.
/// When it is its own session that ends, a server says `fatal`.
pub(crate) fn is_away(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    let trouble = error.code().is_some_and(|code| code.starts_with("08") || code.starts_with("57P"));
    let of_postgres = error.try_downcast_ref::<PgDatabaseError>();
    trouble && of_postgres.is_some_and(|error| error.severity() == PgSeverity::Error)
}
