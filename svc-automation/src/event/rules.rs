//! Names of events, and limits on what events lead to. Pure.

/// The events of the contract. A list of the contract, not of what happens to be stored.
pub(crate) const BUILT_IN: [&str; 46] = [
    "ticket.created",
    "ticket.inbound_message",
    "ticket.message",
    "ticket.status_changed",
    "ticket.closed",
    "ticket.stale",
    "quote.created",
    "quote.viewed",
    "quote.accepted",
    "quote.phase_changed",
    "quote.converted_to_project",
    "quote.silent",
    "deal.created",
    "deal.phase_changed",
    "deal.won",
    "deal.lost",
    "deal.quote_accepted",
    "deal.stalled",
    "deal.phase_idle",
    "deal.close_due",
    "deal.no_followup",
    "sales.document_sent",
    "invoice.created",
    "invoice.credited",
    "invoice.paid",
    "invoice.late",
    "project.created",
    "project.status_changed",
    "project.completed",
    "project.phase_completed",
    "workorder.completed",
    "customer.created",
    "customer.updated",
    "customer.first_invoice_paid",
    "customer.inactive",
    "customer.no_followup",
    "customer.payment_overdue",
    "subscription.expiring",
    "mail.unanswered",
    "document.draft",
    "work.recurring",
    "planning.scheduled",
    "planning.rescheduled",
    "planning.updated",
    "planning.unscheduled",
    "planning.deleted",
];

/// Runs in a row that may lead to one another. The next is stored as failed, so that nothing feeds itself for ever.
pub(crate) const MAX_DEPTH: u32 = 8;

/// The name that an event is stored under: one event of the contract has two names in use.
pub(crate) fn canonical(name: &str) -> &str {
    if name == "quote.fase_changed" { "quote.phase_changed" } else { name }
}

/// Whether a name has only the characters that an event may have: `a-z 0-9 _ . : -`. The contract limits its length.
pub(crate) fn is_event_name(name: &str) -> bool {
    name.bytes().all(|byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.' | b':' | b'-')
    })
}

/// Data that was left out is an empty object.
pub(crate) fn or_empty_object(data: &str) -> String {
    if data.is_empty() { "{}".to_owned() } else { data.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_shows_exactly_the_events_of_the_contract() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/src/pages/reference/events.json");
        let catalog: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let events = catalog["events"].as_array().unwrap().iter();
        let mut shown: Vec<&str> = events.map(|event| event["name"].as_str().unwrap()).collect();
        let mut known = BUILT_IN.to_vec();
        shown.sort_unstable();
        known.sort_unstable();
        assert_eq!(shown, known);
    }

    #[test]
    fn both_names_of_a_changed_quote_are_one_event() {
        assert_eq!(canonical("quote.fase_changed"), "quote.phase_changed");
        assert_eq!(canonical("quote.viewed"), "quote.viewed");
        assert!(BUILT_IN.contains(&canonical("quote.fase_changed")));
    }

    #[test]
    fn an_event_name_has_lowercase_letters_digits_and_few_signs() {
        assert!(is_event_name("order.shipped:2026_11-14"));
        for wrong in ["Order", "a b", "a/b", "é", "a\n", "a*"] {
            assert!(!is_event_name(wrong), "{wrong:?}");
        }
    }
}
