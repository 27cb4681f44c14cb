//! What the options of a field ask of its value. The generated `impl Check` of each request message calls these.

use chrono::{DateTime, Datelike, NaiveDate};

use crate::api::Fault;
use crate::fault::{At, Faults};
use crate::{decimal, percentage};

/// Normalises a request message in place and collects its faults.
///
/// `mask` lists the fields that a partial update carries; without it every field counts.
pub trait Check {
    fn check(&mut self, at: &At<'_>, mask: Option<&[String]>, faults: &mut Faults);
}

/// What a text has to be, besides its length. Public because which of these the contract uses changes with it.
pub enum Syntax {
    Free,
    Date,
    DateOrTime,
    Decimal { scale: u32 },
    Json,
    Percentage,
}

struct Text {
    max: usize,
    trim: bool,
    syntax: Syntax,
}

fn wanted(mask: Option<&[String]>, name: &str) -> bool {
    mask.is_none_or(|paths| paths.iter().any(|path| path == name))
}

fn text(at: &At<'_>, value: &mut String, rule: &Text, required: bool, faults: &mut Faults) {
    if rule.trim {
        let trimmed = value.trim();
        if trimmed.len() != value.len() {
            *value = trimmed.to_owned();
        }
    }
    if value.is_empty() || (required && value.trim().is_empty()) {
        if required {
            missing(at, faults);
        }
        return;
    }
    let label = at.label();
    if value.contains('\0') {
        faults.add(at, Fault::BadText, format!("{label} must not contain the character U+0000"));
        // What looks for further faults may ask the database for the text, which knows no such character.
        value.retain(|character| character != '\0');
        return;
    }
    // The byte length is an upper bound of the characters, so counting is rarely needed. Free JSON is limited in bytes.
    let long =
        value.len() > rule.max && (matches!(rule.syntax, Syntax::Json) || value.chars().count() > rule.max);
    if long {
        faults.add(at, Fault::TooLong, format!("{label} must have at most {} characters", rule.max));
        return;
    }
    match rule.syntax {
        Syntax::Free => {}
        Syntax::Date if is_date(value) => {}
        Syntax::Date => {
            faults.add(at, Fault::NotADate, format!("{label} must be a date that exists, as YYYY-MM-DD"));
        }
        Syntax::DateOrTime if is_date(value) || is_time(value) => {}
        Syntax::DateOrTime => faults.add(
            at,
            Fault::NotATime,
            format!("{label} must be a date (YYYY-MM-DD) or an RFC 3339 timestamp"),
        ),
        Syntax::Decimal { scale } => match decimal::normalise(value, scale) {
            Ok(normal) => *value = normal,
            Err(error) => faults.add(at, error.fault(), format!("{label} {error}")),
        },
        Syntax::Percentage => match percentage::normalise(value) {
            Ok(normal) => *value = normal,
            Err(error) => faults.add(at, error.fault(), format!("{label} {error}")),
        },
        Syntax::Json if serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(value).is_ok() => {
        }
        Syntax::Json => faults.add(at, Fault::NotAnObject, format!("{label} must be a JSON object")),
    }
}

/// Of the years 1 to 9999, which is what four digits and the database have in common.
fn is_date(value: &str) -> bool {
    let exists = |date: NaiveDate| date.year() >= 1 && date.to_string() == value;
    value.len() == 10 && NaiveDate::parse_from_str(value, "%Y-%m-%d").is_ok_and(exists)
}

fn is_time(value: &str) -> bool {
    DateTime::parse_from_rfc3339(value).is_ok_and(|time| (1..=9999).contains(&time.to_utc().year()))
}

fn missing(at: &At<'_>, faults: &mut Faults) {
    faults.add(at, Fault::Required, format!("{} is required", at.label()));
}

fn many(at: &At<'_>, count: usize, max: usize, faults: &mut Faults) {
    if count > max {
        faults.add(at, Fault::TooMany, format!("{} must have at most {max} entries", at.label()));
    }
}

fn whole(at: &At<'_>, value: i64, min: Option<i64>, max: Option<i64>, faults: &mut Faults) {
    let too_small = min.is_some_and(|min| value < min);
    let too_large = max.is_some_and(|max| value > max);
    if too_small || too_large {
        let range = match (min, max) {
            (Some(min), Some(max)) => format!("between {min} and {max}"),
            (Some(min), None) => format!("at least {min}"),
            (None, Some(max)) => format!("at most {max}"),
            (None, None) => return,
        };
        faults.add(at, Fault::OutOfRange, format!("{} must be {range}", at.label()));
    }
}

fn choice(at: &At<'_>, value: i32, known: bool, allowed: &str, required: bool, faults: &mut Faults) {
    if !known {
        faults.add(at, Fault::NotAllowed, format!("{} must be one of: {allowed}", at.label()));
    } else if required && value == 0 {
        missing(at, faults);
    }
}

#[allow(
    clippy::unreadable_literal,
    clippy::useless_conversion,
    clippy::wildcard_imports,
    reason = "generated: the same code for 32 and 64 bits"
)]
mod generated {
    use super::*;

    include!(concat!(env!("OUT_DIR"), "/checks.rs"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relations::{ClientInput, ClientLinkInput, LinkClientRequest};

    fn faults_of(message: &mut impl Check) -> Vec<(String, Fault)> {
        let mut faults = Faults::default();
        message.check(&At::ROOT, None, &mut faults);
        faults.entries().iter().map(|entry| (entry.pointer.clone(), entry.code())).collect()
    }

    #[test]
    fn every_fault_of_a_message_is_found_with_its_place() {
        let mut client = ClientInput {
            r#type: 7,
            company_name: "x".repeat(256),
            city: "a\0b".into(),
            payment_term: Some(366),
            ..ClientInput::default()
        };
        assert_eq!(
            faults_of(&mut client),
            [
                ("/type".to_owned(), Fault::NotAllowed),
                ("/company_name".to_owned(), Fault::TooLong),
                ("/city".to_owned(), Fault::BadText),
                ("/payment_term".to_owned(), Fault::OutOfRange),
            ]
        );
        assert_eq!(client.city, "ab", "what the database can be asked for");
    }

    #[test]
    fn a_text_is_trimmed_and_counted_in_characters() {
        let mut client =
            ClientInput { company_name: format!("  {} ", "é".repeat(255)), ..ClientInput::default() };
        assert_eq!(faults_of(&mut client), []);
        assert_eq!(client.company_name, "é".repeat(255));
    }

    #[test]
    fn a_blank_required_text_inside_is_missing() {
        let link = ClientLinkInput { client_id: "  ".into(), ..ClientLinkInput::default() };
        let mut request = LinkClientRequest { id: String::new(), link: Some(link) };
        assert_eq!(faults_of(&mut request), [("/link/client_id".to_owned(), Fault::Required)]);
    }

    #[test]
    fn a_date_must_exist() {
        assert!(is_date("2024-02-29"));
        for wrong in ["2026-02-30", "2026-2-03", "+026-02-03", "2026-02-03T", "20260203xx", "0000-01-01"] {
            assert!(!is_date(wrong), "{wrong}");
        }
    }

    /// A text after its check, or the fault with its detail.
    fn checked(value: &str, syntax: Syntax) -> Result<String, (Fault, String)> {
        let (mut value, mut faults) = (value.to_owned(), Faults::default());
        let rule = Text { max: 255, trim: false, syntax };
        text(&At::ROOT.name("field"), &mut value, &rule, false, &mut faults);
        match faults.into_entries().pop() {
            Some(entry) => Err((entry.code(), entry.detail)),
            None => Ok(value),
        }
    }

    #[test]
    fn a_decimal_has_its_scale_and_its_size() {
        let decimal = |value: &str, scale| checked(value, Syntax::Decimal { scale });
        assert_eq!(decimal("0012.50", 2).as_deref(), Ok("12.5"));
        assert_eq!(decimal("", 2).as_deref(), Ok(""));
        assert_eq!(decimal("-999999999999.9999", 4).as_deref(), Ok("-999999999999.9999"));
        let fault = |value: &str, scale| decimal(value, scale).unwrap_err().0;
        assert_eq!(fault("12.345", 2), Fault::TooPrecise);
        assert_eq!(fault("0.1", 0), Fault::TooPrecise);
        assert_eq!(fault("1000000000000", 2), Fault::OutOfRange);
        assert_eq!(fault("12,5", 2), Fault::NotANumber);
        assert_eq!(decimal("0.123", 2).unwrap_err().1, "field must have at most 2 digits behind the point");
    }

    #[test]
    fn a_date_or_a_time_is_either() {
        for right in ["2026-11-14", "2026-11-14T09:30:00Z", "2026-11-14T09:30:00.123+02:00", ""] {
            assert_eq!(checked(right, Syntax::DateOrTime).as_deref(), Ok(right));
        }
        for wrong in
            ["2026-02-30", "2026-02-30T09:30:00Z", "2026-11-14T09:30:00", "0000-12-31T23:00:00Z", "now"]
        {
            assert_eq!(checked(wrong, Syntax::DateOrTime).unwrap_err().0, Fault::NotATime, "{wrong}");
        }
        assert_eq!(checked("2026-11-14T09:30:00Z", Syntax::Date).unwrap_err().0, Fault::NotADate);
    }

    #[test]
    fn a_percentage_is_kept_in_one_spelling() {
        assert_eq!(checked(" 5.50 % ", Syntax::Percentage).as_deref(), Ok("5.5"));
        assert_eq!(checked("", Syntax::Percentage).as_deref(), Ok(""));
        let (fault, detail) = checked("101", Syntax::Percentage).unwrap_err();
        assert_eq!((fault, detail.as_str()), (Fault::OutOfRange, "field must be between 0 and 100"));
    }

    #[test]
    fn what_an_update_does_not_carry_is_not_missing() {
        let rule = |mask: &[&str]| {
            let mask: Vec<String> = mask.iter().map(|path| (*path).to_owned()).collect();
            let mut faults = Faults::default();
            ClientLinkInput::default().check(&At::ROOT, Some(&mask), &mut faults);
            faults.into_entries().into_iter().map(|entry| entry.code()).collect::<Vec<_>>()
        };
        assert_eq!(rule(&["function"]), []);
        assert_eq!(rule(&["client_id"]), [Fault::Required], "`null` cannot empty what is required");
    }
}
