//! Rows that a program gives to a statement: as one array for each column, or as plain values if there is one row, which
//! costs Postgres less.

use sqlx::Postgres;
use sqlx::encode::Encode;
use sqlx::postgres::{PgArguments, PgHasArrayType};
use sqlx::query::Query;
use sqlx::types::Type;

/// The name of a column and its type.
pub(crate) type Column = (&'static str, &'static str);

/// How many rows there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    None,
    One,
    Several,
}

impl Rows {
    pub(crate) fn of(count: usize) -> Self {
        match count {
            0 => Self::None,
            1 => Self::One,
            _ => Self::Several,
        }
    }
}

/// What stands behind `from`. The parameters follow after the first `bound`.
pub(crate) fn source(alias: &str, columns: &[Column], rows: Rows, bound: usize) -> String {
    let numbered = columns.iter().zip(bound + 1..);
    if rows == Rows::One {
        let values: Vec<String> =
            numbered.map(|((name, kind), number)| format!("${number}::{kind} as {name}")).collect();
        return format!("(select {}) {alias}", values.join(", "));
    }
    let arrays: Vec<String> = numbered.map(|((_, kind), number)| format!("${number}::{kind}[]")).collect();
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    format!("unnest({}) as {alias} ({})", arrays.join(", "), names.join(", "))
}

/// Binds a column of the rows.
pub(crate) fn bind<'q, T>(
    query: Query<'q, Postgres, PgArguments>,
    values: &'q [T],
    rows: Rows,
) -> Query<'q, Postgres, PgArguments>
where
    T: Encode<'q, Postgres> + Type<Postgres> + PgHasArrayType + Sync,
{
    match values {
        [value] if rows == Rows::One => query.bind(value),
        _ => query.bind(values),
    }
}
