//! What a distributed database says otherwise than one server does.

use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// Whether what the server could not do is to reach another node: a statement has failed then, and the session goes on.
/// When it is its own session that ends, a server says `fatal`.
pub(crate) fn is_away(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    let trouble = error.code().is_some_and(|code| code.starts_with("08") || code.starts_with("57P"));
    let of_postgres = error.try_downcast_ref::<PgDatabaseError>();
    trouble && of_postgres.is_some_and(|error| error.severity() == PgSeverity::Error)
}

/// The name of a constraint as it was given: a node adds the number of the shard, of six digits at least.
pub(crate) fn without_shard(constraint: &str) -> &str {
    match constraint.rsplit_once('_') {
        Some((name, shard)) if shard.len() >= 6 && shard.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => constraint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constraint_is_known_whichever_shard_tells_of_it() {
        assert_eq!(without_shard("account_name"), "account_name");
        assert_eq!(without_shard("account_name_102552"), "account_name");
        assert_eq!(without_shard("flow_name_1000001"), "flow_name");
        assert_eq!(without_shard("line_2"), "line_2");
    }
}
