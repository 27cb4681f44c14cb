//! What the options of a field ask of its value. The generated `impl Check` of each request message calls these.

use chrono::{DateTime, NaiveDate};

use crate::api::Fault;
use crate::decimal;
use crate::fault::{At, Faults};

/// Normalises a request message in place and collects its faults.
///
/// `mask` lists the fields that a partial update carries; without it every field counts.
pub trait Check {
    fn check(&mut self, at: &At<'_>, mask: Option<&[String]>, faults: &mut Faults);
}

enum Syntax {
    Free,
    Date,
    DateOrTime,
    Decimal { scale: u32 },
    Json,
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
        Syntax::DateOrTime if is_date(value) || DateTime::parse_from_rfc3339(value).is_ok() => {}
        Syntax::DateOrTime => faults.add(
            at,
            Fault::NotATime,
            format!("{label} must be a date (YYYY-MM-DD) or an RFC 3339 timestamp"),
        ),
        Syntax::Decimal { scale } => match decimal::normalise(value, scale) {
            Ok(normal) => *value = normal,
            Err(error) => faults.add(at, error.fault(), format!("{label} {error}")),
        },
        Syntax::Json if serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(value).is_ok() => {
        }
        Syntax::Json => faults.add(at, Fault::NotAnObject, format!("{label} must be a JSON object")),
    }
}

fn is_date(value: &str) -> bool {
    value.len() == 10
        && NaiveDate::parse_from_str(value, "%Y-%m-%d").is_ok_and(|date| date.to_string() == value)
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
        for wrong in ["2026-02-30", "2026-2-03", "+026-02-03", "2026-02-03T", "20260203xx"] {
            assert!(!is_date(wrong), "{wrong}");
        }
    }
}
