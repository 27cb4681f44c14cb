//! Enums that are stored as text. An unknown text is an error that names table, column and value, never a default.

use crate::error::Error;

/// This version cannot read a stored value, because a newer version or a manual change wrote it. It converts into
/// [`Error`] and, for `FromRow`, which allows no other error, into `sqlx::Error`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Undecodable(String);

impl Undecodable {
    pub fn new(explanation: impl Into<String>) -> Self {
        Self(explanation.into())
    }
}

/// Decodes the `text` of `column` (`table.column`) with `from_name`.
///
/// An unknown text does not get a default: that would show a wrong value, and the next change would store it.
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
