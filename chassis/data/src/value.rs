//! The value that a column of a counted list has.

use std::fmt;

use sqlx::Arguments;
use sqlx::postgres::PgArguments;
use uuid::Uuid;

/// A value of a closed set, or the id of one of the few records that an account can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(i16),
    Id(Uuid),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i16> for Value {
    fn from(number: i16) -> Self {
        Self::Number(number)
    }
}

impl From<Uuid> for Value {
    fn from(id: Uuid) -> Self {
        Self::Id(id)
    }
}

/// As in the name of a counter.
impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(text),
            Self::Number(number) => number.fmt(formatter),
            Self::Id(id) => id.fmt(formatter),
        }
    }
}

impl Value {
    /// Binds the value and returns its placeholder.
    pub(crate) fn bind(&self, arguments: &mut PgArguments) -> String {
        // A value that cannot be encoded is not added; the statement then fails, because a placeholder has no value.
        let _ = match self {
            Self::Text(text) => arguments.add(text),
            Self::Number(number) => arguments.add(number),
            Self::Id(id) => arguments.add(id),
        };
        format!("${}", arguments.len())
    }
}
