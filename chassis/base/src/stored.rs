//! Enums that are stored as text: an unknown text is an error that names table, column and value, never a default.

use crate::error::Error;

/// What `text` of `column` (`table.column`) stands for. `decode` knows the column's values.
///
/// A row that this version cannot read was written by a newer one, or by hand. To guess would show, and with the next
/// change store, what nobody meant.
pub fn decode<T>(
    column: &'static str,
    text: &str,
    decode: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Error> {
    decode(text)
        .ok_or_else(|| Error::Internal(format!("{column} is {text:?}, which this version does not know")))
}

/// The error of [`decode`] where a row is read, which knows errors of the database only.
#[cfg(feature = "sqlx")]
pub fn undecodable(error: Error) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
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
