//! Reads a row column by column, in the order of the statement. A page of a list has hundreds of values; looking each
//! up by name and checking its type costs more than decoding it.

use sqlx::postgres::PgRow;
use sqlx::{Decode, Postgres, Row};

/// A cursor over the columns of a row. Types are not checked at run time; tests read every statement at least once.
pub struct Columns<'r> {
    row: &'r PgRow,
    next: usize,
}

impl<'r> Columns<'r> {
    pub fn of(row: &'r PgRow) -> Self {
        Self { row, next: 0 }
    }

    /// Begins with the last `count` columns.
    pub fn last(row: &'r PgRow, count: usize) -> Self {
        Self { row, next: row.len().saturating_sub(count) }
    }

    /// Reads the next column.
    pub fn take<T: Decode<'r, Postgres>>(&mut self) -> Result<T, sqlx::Error> {
        let index = self.next;
        self.next += 1;
        self.row.try_get_unchecked(index)
    }
}
