//! What the rest of the product hears of tickets.

use chassis::{Event, Tx};
use proto::support::TicketPriority;
use serde_json::{Value, json};

use super::Record;
use crate::message::{self, Automatic};
use crate::status::rules::CLOSED;

/// Characters of a message that an event tells.
const EXCERPT: usize = 2000;

pub fn created(tx: &mut Tx<'_>, ticket: &Record, automatic: Automatic) {
    emit(tx, "ticket.created", ticket, &[of_a_program(automatic)]);
}

/// Whether no person wrote what an event tells of: whoever answers by itself should not answer that.
fn of_a_program(automatic: Automatic) -> (&'static str, Value) {
    ("automatic", json!(automatic.is_automatic()))
}

/// Tells of a status that is another than before.
pub fn status_changed(tx: &mut Tx<'_>, ticket: &Record, from: &str, automatic: Automatic) {
    if ticket.status == from {
        return;
    }
    let automatic = of_a_program(automatic);
    let more = [("from", json!(from)), ("to", json!(ticket.status)), automatic.clone()];
    emit(tx, "ticket.status_changed", ticket, &more);
    if ticket.status == CLOSED {
        emit(tx, "ticket.closed", ticket, &[automatic]);
    }
}

pub fn message(tx: &mut Tx<'_>, ticket: &Record, message: &message::Record) {
    let more = [("message", told(message)), of_a_program(message.automatic)];
    if message.inbound {
        emit(tx, "ticket.inbound_message", ticket, &more);
    }
    emit(tx, "ticket.message", ticket, &more);
}

/// Tells what came about by itself: of the ticket, or of one of its messages. `waited` says after how long.
pub fn time_passed(
    tx: &mut Tx<'_>,
    kind: &'static str,
    ticket: &Record,
    message: Option<&message::Record>,
    waited: &Value,
) {
    let mut more: Vec<(&str, Value)> =
        message.map(|message| ("message", told(message))).into_iter().collect();
    if let Value::Object(waited) = waited {
        more.extend(waited.iter().map(|(name, value)| (name.as_str(), value.clone())));
    }
    emit(tx, kind, ticket, &more);
}

/// What events tell of a message. Of a note, which is for colleagues only, that there is one.
fn told(message: &message::Record) -> Value {
    if message.note {
        return json!({"id": message.id, "direction": "out", "type": "note"});
    }
    json!({
        "id": message.id,
        "direction": if message.inbound { "in" } else { "out" },
        "type": "reply",
        "author": {"name": message.author_name, "email": message.author_email},
        "excerpt": message.body.chars().take(EXCERPT).collect::<String>(),
        "attachments": message.attachments.len(),
    })
}

fn emit(tx: &mut Tx<'_>, kind: &'static str, ticket: &Record, more: &[(&str, Value)]) {
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
    tx.emit(&Event {
        kind,
        entity_type: "ticket",
        entity_id: ticket.id,
        version: ticket.version,
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
