//! Percentages as text: one spelling for each, whichever way it was sent.

use crate::api::Fault;
use crate::decimal;

/// Most digits behind the point.
const SCALE: u32 = 4;
const MOST: u64 = 100;

/// Why a text is no percentage. `Display` continues a sentence that starts with the field's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    NotANumber,
    OutOfRange,
    TooPrecise,
}

impl Error {
    pub fn fault(self) -> Fault {
        match self {
            Self::NotANumber => Fault::NotANumber,
            Self::OutOfRange => Fault::OutOfRange,
            Self::TooPrecise => Fault::TooPrecise,
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotANumber => f.write_str("must be a percentage, for example 21, \"21\" or \"21%\""),
            Self::OutOfRange => write!(f, "must be between 0 and {MOST}"),
            Self::TooPrecise => write!(f, "must have at most {SCALE} digits behind the point"),
        }
    }
}

/// `"21"`, `" 21.0"`, `"2.1e1"` and `"21 %"` are all `21`: a decimal from 0 to 100, without padding.
pub fn normalise(text: &str) -> Result<String, Error> {
    let trimmed = text.trim();
    let number = trimmed.strip_suffix('%').map_or(trimmed, str::trim_end);
    let normal = decimal::normalise(number, SCALE).map_err(|error| match error {
        decimal::Error::NotANumber => Error::NotANumber,
        decimal::Error::TooPrecise(_) => Error::TooPrecise,
        decimal::Error::OutOfRange => Error::OutOfRange,
    })?;
    let (whole, fraction) = normal.split_once('.').unwrap_or((&normal, ""));
    // The sign makes the whole part unreadable as an unsigned number: a negative one is never in range.
    match whole.parse::<u64>() {
        Ok(whole) if whole < MOST || (whole == MOST && fraction.is_empty()) => Ok(normal),
        _ => Err(Error::OutOfRange),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_percentages_have_one_spelling() {
        for text in ["21", "21.0", "21%", " 21 % ", "2.1e1", "021.0000000", "21.00%"] {
            assert_eq!(normalise(text).as_deref(), Ok("21"), "{text:?}");
        }
        for (text, expected) in
            [("0", "0"), ("-0", "0"), ("100", "100"), ("1e2%", "100"), ("5.50%", "5.5"), ("0.0001", "0.0001")]
        {
            assert_eq!(normalise(text).as_deref(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn what_is_outside_is_refused_by_its_kind() {
        for text in ["-1", "-0.5", "101", "100.0001", "1e400", "1000000000000"] {
            assert_eq!(normalise(text), Err(Error::OutOfRange), "{text:?}");
        }
        for text in ["0.00001", "12.34567%"] {
            assert_eq!(normalise(text), Err(Error::TooPrecise), "{text:?}");
        }
        for text in ["", " ", "%", "21%%", "%21", "5,5", "21 percent", ".5", "NaN", "1/2"] {
            assert_eq!(normalise(text), Err(Error::NotANumber), "{text:?}");
        }
    }
}
