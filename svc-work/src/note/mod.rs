//! What is worth remembering about a client, an invoice, a project or a deal.

pub mod rpc;
mod store;

pub use rpc::forget;

use chassis::time::timestamp;
use chrono::{DateTime, Utc};
use proto::work::{CreatedNote, Note, NoteMeta};
use uuid::Uuid;

/// The counter of all notes.
const LIST: &str = "note";

/// What a note is about; of a list, what its notes must be about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct About {
    client: Option<Uuid>,
    invoice: Option<Uuid>,
    project: Option<Uuid>,
    deal: Option<Uuid>,
}

/// A note as it is stored.
#[derive(Clone, Debug)]
struct Record {
    id: Uuid,
    body: String,
    about: About,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<Record> for Note {
    fn from(record: Record) -> Self {
        let Record { id, body, about, created_at, updated_at } = record;
        let text = |id: Option<Uuid>| id.map(|id| id.to_string());
        Self {
            id: id.to_string(),
            body,
            created_at: Some(timestamp(created_at)),
            updated_at: Some(timestamp(updated_at)),
            meta: Some(NoteMeta {
                client_id: text(about.client),
                invoice_id: text(about.invoice),
                project_id: text(about.project),
                deal_id: text(about.deal),
            }),
        }
    }
}

impl From<Record> for CreatedNote {
    fn from(record: Record) -> Self {
        let created_at = Some(timestamp(record.created_at));
        Self { id: record.id.to_string(), body: record.body, created_at }
    }
}
