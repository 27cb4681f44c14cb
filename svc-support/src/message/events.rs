//! The events about messages. They are events of the ticket, because listeners follow tickets.

use chassis_data::{Event, Plan};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Record;
use crate::ticket;

/// The number of characters of a message that an event contains.
const MAX_EXCERPT_CHARS: usize = 2000;

/// A message was added to a ticket.
pub(super) fn added(plan: &mut Plan<'_>, ticket: &ticket::Record, message: &Record) {
    let more = [("message", summary(message)), ticket::events::automatic_field(message.automatic)];
    if message.inbound {
        ticket::events::emit(plan, "ticket.inbound_message", ticket, &more);
    }
    ticket::events::emit(plan, "ticket.message", ticket, &more);
}

/// What a scan found about a message. `waited` is the threshold of the scan.
pub(super) fn time_passed(
    plan: &mut Plan<'_>,
    kind: &'static str,
    ticket: &ticket::Record,
    message: &Record,
    waited: &Value,
) {
    ticket::events::time_passed(plan, kind, ticket, &[("message", summary(message))], waited);
}

/// A file that came by mail is to be removed. The service that lists the files of the account follows these events.
pub(super) fn file_removed(plan: &mut Plan<'_>, id: Uuid) {
    plan.emit(&Event {
        kind: "file.removed",
        entity_type: "file",
        entity_id: id,
        version: 2,
        data: json!({"id": id}).to_string(),
    });
}

/// The part of a message that events contain. A note is for colleagues only, so its text is left out.
fn summary(message: &Record) -> Value {
    if message.note {
        return json!({"id": message.id, "direction": "out", "type": "note"});
    }
    json!({
        "id": message.id,
        "direction": if message.inbound { "in" } else { "out" },
        "type": "reply",
        "author": {"name": message.author_name, "email": message.author_email},
        "excerpt": message.body.chars().take(MAX_EXCERPT_CHARS).collect::<String>(),
        "attachments": message.attachments.len(),
    })
}
