//! Enums that are stored as text: an unknown text is an error that names table, column and value, never a default.

use crate::error::Error;

/// What is stored cannot be read by this version: a newer one wrote it, or somebody by hand. Becomes an error of the
/// service, and where a row is read one of the database, as nothing else may fail there.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Undecodable(String);

impl Undecodable {
    pub fn new(explanation: impl Into<String>) -> Self {
        Self(explanation.into())
    }
}

/// What `text` of `column` (`table.column`) stands for. `from_name` knows the column's values.
///
/// To guess where a text is unknown would show, and with the next change store, what nobody meant.
pub fn decode<T>(
    column: &'static str,
    text: &str,
    from_name: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Undecodable> {
    from_name(text)
        .ok_or_else(|| Undecodable(format!("{column} is {text:?}, which this version does not know")))
}

impl From<Undecodable> for Error {
    fn from(error: Undecodable) -> Self {
        Self::Internal(error.0)
    }
}

#[cfg(feature = "sqlx")]
impl From<Undecodable> for sqlx::Error {
    fn from(error: Undecodable) -> Self {
        Self::Decode(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_text_names_column_and_value() {
        let known = |text: &str| (text == "paid").then_some(1);
        assert_eq!(decode("payment.status", "paid", known).unwrap(), 1);
        let error = decode("payment.status", "lost", known).unwrap_err().to_string();
        assert_eq!(error, "payment.status is \"lost\", which this version does not know");
    }
}
