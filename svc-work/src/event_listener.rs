//! The events of other services that work listens to: a file was stored, and is listed here from then on; a record was
//! deleted, and nothing here refers to it any longer; or who a client is was forgotten, and what is here about it goes.

use chassis_base::{AccountId, id};
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use chassis_work::event_listener::{self, Received, Unseen};
use chassis_work::files::Key;
use chrono::SubsecRound;
use proto::api::event_listener_service_server::EventListenerService;
use proto::api::{DeliverEventsRequest, DeliverEventsResponse, Fault};
use proto::{At, Faults};
use serde::Deserialize;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::error::Error;
use crate::file::{self, DownloadLinks, Record, Source};
use crate::{note, project, task};

const FILE_STORED: &str = "file.stored";
const DEAL_DELETED: &str = "deal.deleted";
const INVOICE_DELETED: &str = "invoice.deleted";
const QUOTE_DELETED: &str = "quote.deleted";
const CLIENT_ANONYMIZED: &str = "client.anonymized";
const FILE_REMOVED: &str = "file.removed";

pub(crate) struct EventListener {
    pub db: Db,
    pub links: DownloadLinks,
}

/// The data of `file.stored`.
#[derive(Deserialize)]
struct StoredFile {
    id: Uuid,
    name: String,
    #[serde(default)]
    content_type: String,
    size: i64,
    /// Where the bytes are in the object store: whose they are, in which area, under which name.
    service: String,
    area: String,
    key: String,
    source: SourceData,
    /// Set for a generated file.
    #[serde(default)]
    version: Option<i64>,
}

#[derive(Deserialize)]
struct SourceData {
    r#type: String,
    id: Uuid,
}

#[tonic::async_trait]
impl EventListenerService for EventListener {
    async fn deliver_events(
        &self,
        request: Request<DeliverEventsRequest>,
    ) -> Result<Response<DeliverEventsResponse>, Status> {
        self.db.write_with(Call::open(request)?, self.links.clone(), deliver).await
    }
}

/// Handles the whole batch in one transaction or refuses it. A retried event that was handled before has no effect.
async fn deliver(
    tx: &mut Tx<'_>,
    input: &DeliverEventsRequest,
    links: &DownloadLinks,
) -> Result<DeliverEventsResponse, Error> {
    let account = tx.account();
    let at = At::ROOT.name("events");
    let new = event_listener::unseen(tx, input).await?;
    let events = event_listener::read::<StoredFile>(tx, &new, FILE_STORED, "a file");
    let stored: Vec<Record> = events
        .into_iter()
        .filter_map(|event| {
            let at = at.index(event.index);
            read_file(event, account, &at.name("data"), &mut tx.faults)
        })
        .collect();
    let deals = deleted_ids(&new, DEAL_DELETED);
    let invoices = deleted_ids(&new, INVOICE_DELETED);
    let quotes = deleted_ids(&new, QUOTE_DELETED);
    let (clients, removed) = (deleted_ids(&new, CLIENT_ANONYMIZED), deleted_ids(&new, FILE_REMOVED));
    tx.valid()?;
    // Always files, tasks, notes, projects, so that two batches lock rows of these tables in the same order.
    for file in stored {
        file::operations::create_external(tx, file, links).await?;
    }
    file::operations::remove_external(tx, &removed).await?;
    task::clear_deals(tx, &deals).await?;
    note::clear_references(tx, &note::Deleted { deals: &deals, invoices: &invoices }).await?;
    note::forget_clients(tx, &clients).await?;
    project::clear_quotes(tx, &quotes).await?;
    for client in clients {
        tx.unaudited("a client without notes changes nothing");
        tx.forget_mentions(client).await?;
    }
    Ok(DeliverEventsResponse {})
}

/// The ids of the records that events of this kind are about.
fn deleted_ids(new: &[Unseen<'_>], kind: &str) -> Vec<Uuid> {
    let events = new.iter().map(|new| new.event).filter(|event| event.r#type == kind);
    events.filter_map(|event| id::parse(&event.entity_id)).collect()
}

/// The row of a file that another service has stored. Its key and name come from outside this service and are checked
/// like those of an upload.
fn read_file(
    event: Received<'_, StoredFile>,
    account: AccountId,
    at: &At<'_>,
    faults: &mut Faults,
) -> Option<Record> {
    let Received { event, data: stored, .. } = event;
    let key = [stored.service.as_str(), &stored.area, &stored.key].join("/");
    if Key::parse(account, &key).is_none() {
        let detail = "service, area and key must be lower-case letters, digits, hyphens and underscores";
        faults.add(&at.name("key"), Fault::BadFormat, detail);
    }
    let Some(created_at) = event.occurred_at.as_ref().and_then(chassis_base::time::from_timestamp) else {
        faults.add(at, Fault::NotATime, "occurred_at must be a time");
        return None;
    };
    // Events have milliseconds. A finer time would be shown by the log as it came and by the table as it is stored.
    let created_at = created_at.trunc_subsecs(3);
    let StoredFile { id, name, content_type, size, source, version, .. } = stored;
    Some(Record {
        id,
        version: 1,
        content_type: file::media_type(&content_type, &name),
        name: file::safe_name(&name),
        size,
        key,
        source: Source { kind: source.r#type, id: Some(source.id), version },
        created_at,
        updated_at: created_at,
    })
}
