//! Durations as authors write them in a flow: `90s`, `15m`, `2h`, `3d`, `2w`, `1d12h`. Pure.

use chrono::TimeDelta;

/// A leap year.
const MAX: TimeDelta = TimeDelta::days(366);

/// `None` for a text that is not a duration, and for durations of zero or of more than [`MAX`].
pub(crate) fn parse(text: &str) -> Option<TimeDelta> {
    let mut rest = text.trim();
    let mut sum = TimeDelta::zero();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let amount: i64 = rest[..digits].parse().ok().filter(|amount| *amount <= 1_000_000_000)?;
        let unit = rest[digits..].chars().next()?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        sum = sum.checked_add(&TimeDelta::try_seconds(amount.checked_mul(seconds)?)?)?;
        rest = &rest[digits + unit.len_utf8()..];
    }
    (sum > TimeDelta::zero() && sum <= MAX).then_some(sum)
}

/// The expected form, for error messages.
pub(crate) const FORM: &str = "must be a span of time such as 90s, 15m, 2h, 3d or 1d12h, at most a year";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_as_authors_write_them() {
        let cases =
            [("90s", 90), ("15m", 900), ("2h", 7200), ("3d", 259_200), ("2w", 1_209_600), ("1d12h", 129_600)];
        for (text, seconds) in cases {
            assert_eq!(parse(text), Some(TimeDelta::seconds(seconds)), "{text}");
        }
        for wrong in ["", "0s", "5", "s", "-1s", "1.5h", "1y", "367d", "99999999999999999999s", "1é", "3 d"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,20}") {
            let _ = parse(&text);
        }
    }
}
