//! What the rows of a counted list have in common.

use std::fmt::Write;

use sqlx::postgres::PgArguments;

use crate::value::Value;

#[derive(Clone, Debug)]
pub(crate) enum Restriction {
    /// The column has this value.
    Equals(&'static str, Value),
    /// The column is null.
    Null(&'static str),
    /// The SQL condition holds, which has no parameters.
    Holds(&'static str),
}

impl Restriction {
    /// Appends the restriction to the conditions of a statement, and its value to the arguments.
    pub(crate) fn write(&self, conditions: &mut String, arguments: &mut PgArguments) {
        // Writing to a String cannot fail.
        let _ = match self {
            Self::Equals(column, value) => write!(conditions, " and {column} = {}", value.bind(arguments)),
            Self::Null(column) => write!(conditions, " and {column} is null"),
            Self::Holds(condition) => write!(conditions, " and ({condition})"),
        };
    }
}
