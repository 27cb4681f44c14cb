//! Which events are taken in.

use chassis_base::AccountId;
use proto::api::Fault;
use proto::{At, Faults};

use super::Event;

/// The events that the product itself knows by name.
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

/// One event has two names in use.
pub(crate) fn canonical(name: &str) -> &str {
    if name == "quote.fase_changed" { "quote.phase_changed" } else { name }
}

/// The event, if it can be kept. An event of another account is a fault of the sender: a token speaks for one account.
pub(crate) fn accept(
    event: &proto::api::Event,
    account: AccountId,
    at: &At<'_>,
    faults: &mut Faults,
) -> Option<Event> {
    let id = event.id.parse().ok();
    if id.is_none() {
        faults.add(&at.name("id"), Fault::BadFormat, "id must be a UUID");
    }
    if event.account_id.parse() != Ok(account.uuid()) {
        let detail = "account_id must be the account that the call is made for";
        faults.add(&at.name("account_id"), Fault::NotAllowed, detail);
    }
    if event.r#type.is_empty() {
        faults.add(&at.name("type"), Fault::Required, "type is required");
    }
    let occurred_at = event.occurred_at.as_ref().and_then(chassis_base::time::from_timestamp);
    if occurred_at.is_none() {
        faults.add(&at.name("occurred_at"), Fault::NotATime, "occurred_at must be a time");
    }
    Some(Event {
        id: id?,
        kind: canonical(&event.r#type).to_owned(),
        entity_type: event.entity_type.clone(),
        entity_id: event.entity_id.clone(),
        sequence: Some(event.sequence),
        data: or_empty_object(&event.data),
        occurred_at: occurred_at?,
        depth: event.depth,
        actor: String::new(),
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
    fn both_names_of_a_changed_quote_are_one_event() {
        assert_eq!(canonical("quote.fase_changed"), "quote.phase_changed");
        assert_eq!(canonical("quote.viewed"), "quote.viewed");
        assert!(BUILT_IN.contains(&canonical("quote.fase_changed")));
    }
}
