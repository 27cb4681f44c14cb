//! The events about files that came with mail.

use chassis_data::{Event, Tx};
use serde_json::json;

use super::FILE_AREA;
use crate::message::{self, Attachment};
use crate::ticket;

/// A file was stored. The service that lists the files of the account follows these events.
pub(super) fn file_stored(
    tx: &mut Tx<'_>,
    ticket: &ticket::Record,
    message: &message::Record,
    attachment: &Attachment,
) {
    let Attachment { id, name, content_type, size, left_out: _ } = attachment;
    let data = json!({
        "id": id,
        "name": name,
        "content_type": content_type,
        "size": size,
        "service": "support",
        "area": FILE_AREA,
        "key": id.simple().to_string(),
        "source": {
            "type": "ticket_message",
            "id": message.id,
            "parent_type": "ticket",
            "parent_id": ticket.id,
        },
        "client_id": ticket.values.client_id,
        "created_at": message.created_at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
    });
    tx.emit(&Event {
        kind: "file.stored",
        entity_type: "file",
        entity_id: *id,
        version: 1,
        data: data.to_string(),
    });
}
