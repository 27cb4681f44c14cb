//! Rows that a program gives to a statement: as one array for each column, or as plain values if there is one row, which
//! costs Postgres less. A few rows can be plain values too. Postgres does not know how long an array will be; where the rows
//! are joined, it could plan every call anew for the length that it has.

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
    /// So many, as plain values.
    Few(usize),
    Several,
}

/// More rows than this are always arrays.
const MAX_FEW: usize = 6;

impl Rows {
    pub(crate) fn of(count: usize) -> Self {
        match count {
            0 => Self::None,
            1 => Self::One,
            _ => Self::Several,
        }
    }

    /// Like [`Rows::of`], with a few rows as plain values: for statements that join them.
    pub(crate) fn joined(count: usize) -> Self {
        if (2..=MAX_FEW).contains(&count) { Self::Few(count) } else { Self::of(count) }
    }

    /// How many parameters they have with so many columns.
    pub(crate) fn parameters(self, columns: usize) -> usize {
        match self {
            Self::None => 0,
            Self::One | Self::Several => columns,
            Self::Few(count) => columns * count,
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
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    if let Rows::Few(count) = rows {
        // The parameters of a column follow each other.
        let row = |number: usize| {
            let values = columns
                .iter()
                .enumerate()
                .map(|(place, (_, kind))| format!("${}::{kind}", bound + place * count + number + 1));
            format!("({})", values.collect::<Vec<_>>().join(", "))
        };
        let rows: Vec<String> = (0..count).map(row).collect();
        return format!("(values {}) as {alias} ({})", rows.join(", "), names.join(", "));
    }
    let arrays: Vec<String> = numbered.map(|((_, kind), number)| format!("${number}::{kind}[]")).collect();
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
    match rows {
        Rows::One | Rows::Few(_) => values.iter().fold(query, Query::bind),
        Rows::None | Rows::Several => query.bind(values),
    }
}
