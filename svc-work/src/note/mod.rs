//! Notes about clients, invoices, projects and deals.

pub(crate) mod operations;
pub(crate) mod rpc;
mod store;

pub(crate) use operations::{clear_references, forget_clients};

use chassis_base::time::timestamp;
use chassis_data::Listing;
use chrono::{DateTime, Utc};
use proto::work::{CreatedNote, Note, NoteMeta};
use uuid::Uuid;

/// The name of the counter of all notes.
const LIST: &str = "note";

/// The lists that show a note.
fn listing(created_at: DateTime<Utc>, id: Uuid) -> Listing {
    Listing::new(created_at, id).of(LIST)
}

/// The records that a note is about. As a filter of a list: those that its notes must be about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Related {
    client: Option<Uuid>,
    invoice: Option<Uuid>,
    project: Option<Uuid>,
    deal: Option<Uuid>,
}

/// Records of other services that were deleted.
pub(crate) struct Deleted<'a> {
    pub deals: &'a [Uuid],
    pub invoices: &'a [Uuid],
}

/// A note as it is stored.
#[derive(Clone, Debug)]
struct Record {
    id: Uuid,
    /// Grows by one with every change.
    version: i64,
    body: String,
    related: Related,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<Record> for Note {
    fn from(record: Record) -> Self {
        let Record { id, version, body, related, created_at, updated_at } = record;
        let text = |id: Option<Uuid>| id.map(|id| id.to_string());
        Self {
            id: id.to_string(),
            body,
            created_at: Some(timestamp(created_at)),
            updated_at: Some(timestamp(updated_at)),
            meta: Some(NoteMeta {
                client_id: text(related.client),
                invoice_id: text(related.invoice),
                project_id: text(related.project),
                deal_id: text(related.deal),
                version,
                updated_at: Some(timestamp(updated_at)),
            }),
        }
    }
}

impl From<Record> for CreatedNote {
    fn from(record: Record) -> Self {
        let created_at = Some(timestamp(record.created_at));
        Self { id: record.id.to_string(), body: record.body, created_at, version: record.version }
    }
}
