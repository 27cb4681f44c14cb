//! Reads a row column by column, in the order of the statement. A list page has hundreds of values; finding each by its
//! name and asking for its type costs more than reading it.

use sqlx::postgres::PgRow;
use sqlx::{Decode, Postgres, Row};

/// The next column to be read. The types are those of the statement's columns, which tests read at least once.
pub struct Columns<'r> {
    row: &'r PgRow,
    next: usize,
}

impl<'r> Columns<'r> {
    pub fn of(row: &'r PgRow) -> Self {
        Self { row, next: 0 }
    }

    /// Reads the next column.
    pub fn take<T: Decode<'r, Postgres>>(&mut self) -> Result<T, sqlx::Error> {
        let index = self.next;
        self.next += 1;
        self.row.try_get_unchecked(index)
    }
}
