//! Decimal numbers as text, exactly as they were sent.

use crate::api::Fault;

/// The absolute value stays below 10 to this power.
const MAX_WHOLE_DIGITS: i64 = 12;

/// Why a text is no usable decimal. `Display` continues a sentence that starts with the field's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    NotANumber,
    TooPrecise(u32),
    OutOfRange,
}

impl Error {
    pub fn fault(self) -> Fault {
        match self {
            Self::NotANumber => Fault::NotANumber,
            Self::TooPrecise(_) => Fault::TooPrecise,
            Self::OutOfRange => Fault::OutOfRange,
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotANumber => f.write_str("must be a number"),
            Self::TooPrecise(scale) => write!(f, "must have at most {scale} digits behind the point"),
            Self::OutOfRange => write!(f, "must be below 10^{MAX_WHOLE_DIGITS} in absolute value"),
        }
    }
}

/// `"0012.50"`, `"1.25e1"` and `"12.5"` are all `12.5`: no leading or trailing zeros, no exponent, no negative zero.
///
/// Takes the grammar of JSON numbers plus leading zeros.
pub fn normalise(text: &str, scale: u32) -> Result<String, Error> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((_, "")) => return Err(Error::NotANumber),
        Some(parts) => parts,
        None => (mantissa, ""),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return Err(Error::NotANumber);
    }
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Ok("0".to_owned());
    }
    // The place of the point, counted from the start of `significant`.
    let leading = i64::try_from(digits.len() - significant.len()).map_err(|_| Error::OutOfRange)?;
    let point = i64::try_from(whole.len()).map_err(|_| Error::OutOfRange)? - leading + exponent;
    let significant = significant.trim_end_matches('0');
    if point > MAX_WHOLE_DIGITS {
        return Err(Error::OutOfRange);
    }
    let behind = i64::try_from(significant.len()).map_err(|_| Error::OutOfRange)? - point;
    if behind > i64::from(scale) {
        return Err(Error::TooPrecise(scale));
    }
    Ok(write_plain(negative, significant, point))
}

fn parse_exponent(text: &str) -> Result<i64, Error> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Error::NotANumber);
    }
    // Far outside any range either way; the cap keeps the arithmetic from overflowing.
    let size = digits.parse::<i64>().unwrap_or(i64::MAX).min(1_000_000);
    Ok(if text.starts_with('-') { -size } else { size })
}

fn write_plain(negative: bool, significant: &str, point: i64) -> String {
    let mut plain = String::with_capacity(significant.len() + 16);
    if negative {
        plain.push('-');
    }
    match usize::try_from(point) {
        Ok(point) if point >= significant.len() => {
            plain.push_str(significant);
            plain.extend(std::iter::repeat_n('0', point - significant.len()));
        }
        Ok(point) if point > 0 => {
            plain.push_str(&significant[..point]);
            plain.push('.');
            plain.push_str(&significant[point..]);
        }
        _ => {
            plain.push_str("0.");
            plain.extend(std::iter::repeat_n('0', usize::try_from(-point).unwrap_or(0)));
            plain.push_str(significant);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_have_one_spelling() {
        for text in ["12.5", "12.50", "0012.5", "1.25e1", "125E-1", "0.125e+2"] {
            assert_eq!(normalise(text, 2).as_deref(), Ok("12.5"), "{text}");
        }
        for text in ["0", "-0", "0.000", "0e999999999999999999999", "-0.0e-5"] {
            assert_eq!(normalise(text, 2).as_deref(), Ok("0"), "{text}");
        }
        assert_eq!(normalise("-0.05", 2).as_deref(), Ok("-0.05"));
        assert_eq!(normalise("1e3", 0).as_deref(), Ok("1000"));
    }

    #[test]
    fn limits_hold_at_the_edge() {
        assert_eq!(normalise("999999999999.99", 2).as_deref(), Ok("999999999999.99"));
        assert_eq!(normalise("1000000000000", 2), Err(Error::OutOfRange));
        assert_eq!(normalise("1e400", 2), Err(Error::OutOfRange));
        assert_eq!(normalise("0.001", 2), Err(Error::TooPrecise(2)));
        assert_eq!(normalise("1e-400", 4), Err(Error::TooPrecise(4)));
        assert_eq!(normalise("0.1000", 1).as_deref(), Ok("0.1"));
    }

    #[test]
    fn other_text_is_no_number() {
        for text in ["", "-", ".", "1.", ".5", "1e", "1e+", "NaN", "1,5", " 1", "١", "0x1", "1_000", "--1"] {
            assert_eq!(normalise(text, 2), Err(Error::NotANumber), "{text:?}");
        }
    }
}
