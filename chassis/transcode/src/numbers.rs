//! The grammar of JSON numbers, and integers parsed from it without a binary float in between.

/// Why a JSON number is not a 64-bit integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotWhole {
    Fraction,
    OutOfRange,
}

/// The length of the JSON number (RFC 8259) at the start of `text`; 0 when there is none.
pub(crate) fn number_length(text: &[u8]) -> usize {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = usize::from(text.first() == Some(&b'-'));
    match digits(end) {
        0 => return 0,
        // A leading zero stands alone: `01` is the number 0 followed by something else.
        _ if text[end] == b'0' => end += 1,
        count => end += count,
    }
    if text.get(end) == Some(&b'.') {
        match digits(end + 1) {
            0 => return 0,
            count => end += 1 + count,
        }
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        match digits(end + 1 + sign) {
            0 => return 0,
            count => end += 1 + sign + count,
        }
    }
    end
}

pub(crate) fn is_number(text: &str) -> bool {
    !text.is_empty() && number_length(text.as_bytes()) == text.len()
}

/// The value of a JSON number that is an integer: `14`, `14.0` and `1.4e1` are all 14.
pub(crate) fn whole(number: &str) -> Result<i64, NotWhole> {
    if let Ok(value) = number.parse() {
        return Ok(value);
    }
    let (negative, unsigned) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, saturating_exponent(exponent)),
        None => (unsigned, 0),
    };
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{integer}{fraction}");
    let significant = digits.trim_start_matches('0');
    let kept = significant.trim_end_matches('0');
    if kept.is_empty() {
        return Ok(0);
    }
    let count = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    // The value is `kept` times ten to the power of `shift`.
    let shift = exponent.saturating_sub(count(fraction)).saturating_add(count(significant) - count(kept));
    if shift < 0 {
        return Err(NotWhole::Fraction);
    }
    if shift.saturating_add(count(kept)) > 19 {
        return Err(NotWhole::OutOfRange);
    }
    let zeros = usize::try_from(shift).unwrap_or(0);
    let sign = if negative { "-" } else { "" };
    format!("{sign}{kept}{}", "0".repeat(zeros)).parse().map_err(|_| NotWhole::OutOfRange)
}

fn saturating_exponent(text: &str) -> i64 {
    // Half of the range, so that adding the length of a text cannot overflow.
    const LIMIT: i64 = i64::MAX / 2;
    let negative = text.starts_with('-');
    let digits = text.trim_start_matches(['+', '-']);
    let size = digits.parse::<i64>().unwrap_or(LIMIT).min(LIMIT);
    if negative { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_that_of_json() {
        for text in ["0", "-0", "10", "1.5", "-1.50", "1e5", "1E+5", "1.5e-400", "0.0"] {
            assert!(is_number(text), "{text}");
        }
        for text in
            ["", "-", "+1", "01", "1.", ".5", "1e", "1e+", "NaN", "1 ", " 1", "0x1", "1_0", "--1", "١"]
        {
            assert!(!is_number(text), "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_read_in_every_spelling() {
        for (text, value) in [
            ("14", 14),
            ("14.0", 14),
            ("1e1", 10),
            ("1.5e1", 15),
            ("1500e-2", 15),
            ("0.00015e5", 15),
            ("-0", 0),
            ("-0.0e5", 0),
            ("0e99999999999999999999", 0),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808.000", i64::MIN),
            ("9.223372036854775807e18", i64::MAX),
        ] {
            assert_eq!(whole(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn fractions_and_numbers_outside_64_bits_are_told_apart() {
        for text in ["1.5", "1e-1", "15e-1", "1e-400", "0.1e-99999999999999999999"] {
            assert_eq!(whole(text), Err(NotWhole::Fraction), "{text}");
        }
        for text in
            ["9223372036854775808", "-9223372036854775809", "1e400", "1e99999999999999999999", "10e18"]
        {
            assert_eq!(whole(text), Err(NotWhole::OutOfRange), "{text}");
        }
    }
}
