//! What makes a project valid. Pure.

use chassis_base::update_mask::UpdateMask;
use proto::api::Fault;
use proto::billing::Document;
use proto::work::{ProjectInput, ProjectStatus};
use proto::{At, Faults};

use super::Values;
use crate::error::Error;

const FIELDS: [&str; 6] = ["name", "client_id", "status", "start_date", "end_date", "budget"];

/// The values that a project will have: those of `given` that the mask names, and the rest of `current`. A text that
/// cannot be read has a fault already and counts as left out.
pub(super) fn apply(
    named: UpdateMask<'_>,
    given: &ProjectInput,
    current: &Values,
    faults: &mut Faults,
) -> Values {
    let at = At::ROOT.name("project");
    named.check(|name| FIELDS.contains(&name), "project", faults);
    if matches!(named, UpdateMask::Only(_))
        && named.has("status")
        && given.status() == ProjectStatus::Unspecified
    {
        faults.add(&at.name("status"), Fault::NotNullable, "status must be one of the statuses of a project");
    }
    let status = match given.status() {
        ProjectStatus::Unspecified => ProjectStatus::Planned,
        status => status,
    };
    let mut values = current.clone();
    named.put("name", &given.name, &mut values.name);
    named.put("status", &status, &mut values.status);
    named.put("client_id", &chassis_base::id::parse(&given.client_id), &mut values.client);
    named.put("budget", &given.budget.parse().ok(), &mut values.budget);
    named.put("start_date", &given.start_date.parse().ok(), &mut values.start);
    named.put("end_date", &given.end_date.parse().ok(), &mut values.end);
    let has_date = named.has("start_date") || named.has("end_date");
    if has_date
        && let (Some(start), Some(end)) = (values.start, values.end)
        && end < start
    {
        let detail = format!("end_date must not be before start_date ({start})");
        // The fault belongs to the field that was sent.
        let field = if named.has("end_date") { "end_date" } else { "start_date" };
        faults.add(&at.name(field), Fault::OutOfRange, detail);
    }
    values
}

/// The values that a project takes from its quote, which must be accepted.
pub(super) fn from_quote(quote: &Document) -> Result<Values, Error> {
    if quote.meta.as_ref().is_none_or(|meta| meta.accepted_at.is_none()) {
        let status = &quote.payment_status;
        return Err(Error::WrongStatus(format!(
            "The quote is not accepted; its payment_status is {status}. Accept it first."
        )));
    }
    Ok(Values {
        name: quote.title.clone(),
        client: chassis_base::id::parse(&quote.client_id),
        budget: quote.total_excl_vat.parse().ok(),
        ..Values::default()
    })
}

/// `P-00001` and so on.
pub(super) fn number(value: i64) -> String {
    format!("P-{value:05}")
}

/// The text that a search looks through, in lower case. The line break keeps a search from matching across the two.
pub(super) fn search_text(name: &str, number: &str) -> String {
    format!("{name}\n{number}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kitchen() -> Values {
        Values {
            name: "Kitchen".into(),
            status: ProjectStatus::Active,
            client: Some(uuid::Uuid::from_u128(1)),
            budget: Some(1.into()),
            start: "2026-01-01".parse().ok(),
            end: "2026-02-01".parse().ok(),
        }
    }

    fn applied(paths: &[&str], given: &ProjectInput) -> (Values, Vec<(String, Fault)>) {
        let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
        let mut faults = Faults::default();
        let values = apply(UpdateMask::Only(&paths), given, &kitchen(), &mut faults);
        (values, faults.entries().iter().map(|entry| (entry.pointer.clone(), entry.code())).collect())
    }

    #[test]
    fn only_what_the_mask_names_changes_and_what_may_be_empty_is_emptied() {
        let given = ProjectInput { name: "Bath".into(), budget: "5".into(), ..ProjectInput::default() };
        let (values, faults) = applied(&["name", "client_id", "start_date"], &given);
        assert_eq!(faults, []);
        assert_eq!(values, Values { name: "Bath".into(), client: None, start: None, ..kitchen() });
    }

    #[test]
    fn a_status_cannot_be_emptied_and_other_names_are_refused() {
        let (_, faults) = applied(&["status", "colour"], &ProjectInput::default());
        let expected = [
            ("/update_mask".to_owned(), Fault::NotAllowed),
            ("/project/status".to_owned(), Fault::NotNullable),
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn the_end_is_not_before_the_start_whichever_of_the_two_is_sent() {
        let day = |start: &str, end: &str| ProjectInput {
            start_date: start.into(),
            end_date: end.into(),
            ..ProjectInput::default()
        };
        let faults = |paths: &[&str], given: &ProjectInput| applied(paths, given).1;
        assert_eq!(faults(&["end_date"], &day("", "2026-01-01")), []);
        let at = |field: &str| vec![(format!("/project/{field}"), Fault::OutOfRange)];
        assert_eq!(faults(&["end_date"], &day("", "2025-12-31")), at("end_date"));
        assert_eq!(faults(&["start_date"], &day("2026-02-02", "")), at("start_date"));
        assert_eq!(faults(&["start_date", "end_date"], &day("2026-02-02", "")), []);
    }

    #[test]
    fn a_number_has_five_digits_and_more_when_they_are_used_up() {
        assert_eq!((number(1), number(123_456)), ("P-00001".to_owned(), "P-123456".to_owned()));
    }
}
