//! A statement of an operation that is left to the last statement of the transaction.

use chassis_base::Error;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Arguments, Execute, Postgres, SqlStr};

pub(super) struct Deferred {
    pub sql: SqlStr,
    pub arguments: PgArguments,
}

impl Deferred {
    pub(super) fn new(mut statement: Query<'_, Postgres, PgArguments>) -> Result<Self, Error> {
        let arguments = statement.take_arguments().map_err(sqlx::Error::Encode)?.unwrap_or_default();
        Ok(Self { sql: statement.sql(), arguments })
    }

    /// Whether it changes a row that must be there.
    pub(super) fn is_update(&self) -> bool {
        ["update ", "with deferred as (update "].iter().any(|form| self.sql.as_str().starts_with(form))
    }

    /// How many parameters it has.
    pub(super) fn bound(&self) -> usize {
        self.arguments.len()
    }
}
