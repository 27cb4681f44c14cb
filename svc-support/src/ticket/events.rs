//! The events about tickets. Those about their messages are in `message/events.rs`.

use chassis_data::{Event, Plan};
use proto::support::TicketPriority;
use serde_json::{Value, json};

use super::Record;
use crate::automatic::Automatic;
use crate::status::rules::CLOSED;

/// A field that an event has besides those of every ticket event.
pub(crate) type Field<'a> = (&'a str, Value);

pub(crate) fn created(plan: &mut Plan<'_>, ticket: &Record, automatic: Automatic) {
    emit(plan, "ticket.created", ticket, &[automatic_field(automatic)]);
}

/// Emits nothing when the status is the same as before.
pub(crate) fn status_changed(plan: &mut Plan<'_>, ticket: &Record, from: &str, automatic: Automatic) {
    if ticket.status == from {
        return;
    }
    let automatic = automatic_field(automatic);
    let more = [("from", json!(from)), ("to", json!(ticket.status)), automatic.clone()];
    emit(plan, "ticket.status_changed", ticket, &more);
    if ticket.status == CLOSED {
        emit(plan, "ticket.closed", ticket, &[automatic]);
    }
}

/// What a scan found about a ticket. `waited` is the threshold of the scan.
pub(crate) fn time_passed(
    plan: &mut Plan<'_>,
    kind: &'static str,
    ticket: &Record,
    more: &[Field<'_>],
    waited: &Value,
) {
    let mut fields = more.to_vec();
    if let Value::Object(waited) = waited {
        fields.extend(waited.iter().map(|(name, value)| (name.as_str(), value.clone())));
    }
    emit(plan, kind, ticket, &fields);
}

/// Says whether a program caused the event: listeners that answer on their own must not answer that.
pub(crate) fn automatic_field(automatic: Automatic) -> Field<'static> {
    ("automatic", json!(automatic.is_automatic()))
}

pub(crate) fn emit(plan: &mut Plan<'_>, kind: &'static str, ticket: &Record, more: &[Field<'_>]) {
    let mut data = json!({
        "id": ticket.id,
        "number": ticket.number,
        "subject": ticket.values.subject,
        "status": ticket.status,
        "priority": priority_name(ticket.values.priority),
        "client_id": ticket.values.client_id,
        "client_name": ticket.values.client_name,
        "client_email": ticket.values.client_email,
        "source": ticket.source.name(),
    });
    if let Value::Object(data) = &mut data {
        data.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    }
    plan.emit(&Event {
        kind,
        entity_type: "ticket",
        entity_id: ticket.id,
        version: ticket.event_version(),
        data: data.to_string(),
    });
}

fn priority_name(priority: TicketPriority) -> &'static str {
    match priority {
        TicketPriority::Low => "low",
        TicketPriority::Normal | TicketPriority::Unspecified => "normal",
        TicketPriority::High => "high",
        TicketPriority::Urgent => "urgent",
    }
}
