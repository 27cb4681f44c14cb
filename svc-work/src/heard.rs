//! What work hears of other services: a file was stored, and is listed here from then on; a record was deleted, and what
//! is about it here is no longer.

use chassis::files::Key;
use chassis::heard::Told;
use chassis::{AccountId, Call, Db, Tx, heard, id};
use proto::api::event_listener_service_server::EventListenerService;
use proto::api::{DeliverEventsRequest, DeliverEventsResponse, Fault};
use proto::{At, Faults};
use serde::Deserialize;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::Error;
use crate::file::{self, LIST, Record, Source, store};
use crate::{note, project, task};

const FILE_STORED: &str = "file.stored";
const DEAL_DELETED: &str = "deal.deleted";
const INVOICE_DELETED: &str = "invoice.deleted";
const QUOTE_DELETED: &str = "quote.deleted";

pub struct Heard {
    pub db: Db,
}

/// What the event tells of a file.
#[derive(Deserialize)]
struct Stored {
    id: Uuid,
    name: String,
    #[serde(default)]
    content_type: String,
    size: i64,
    /// Where its bytes are: of which service, in which area, under which name.
    service: String,
    area: String,
    key: String,
    source: Origin,
    /// Of a generated file.
    #[serde(default)]
    version: Option<i64>,
}

#[derive(Deserialize)]
struct Origin {
    r#type: String,
    id: Uuid,
}

#[tonic::async_trait]
impl EventListenerService for Heard {
    async fn deliver_events(
        &self,
        request: Request<DeliverEventsRequest>,
    ) -> Result<Response<DeliverEventsResponse>, Status> {
        self.db.write(Call::open(request)?, deliver).await
    }
}

/// The whole batch or nothing of it. To hear of a file twice changes nothing: it has its id, and its bytes have one row.
/// Nor does it to hear twice that a record is gone.
async fn deliver(tx: &mut Tx<'_>, input: &DeliverEventsRequest) -> Result<DeliverEventsResponse, Error> {
    let (account, place) = (tx.account(), At::ROOT.name("events"));
    let told = heard::read::<Stored>(tx, input, FILE_STORED, "a file");
    let read = told.into_iter().filter_map(|told| {
        let at = place.index(told.index);
        record(told, account, &at.name("data"), &mut tx.faults)
    });
    let stored: Vec<Record> = read.collect();
    let (deals, invoices) = (gone(input, DEAL_DELETED), gone(input, INVOICE_DELETED));
    let quotes = gone(input, QUOTE_DELETED);
    tx.valid()?;
    for file in stored {
        keep(tx, file).await?;
    }
    task::forget_deals(tx, &deals).await?;
    note::forget(tx, &deals, &invoices).await?;
    project::forget_quotes(tx, &quotes).await?;
    Ok(DeliverEventsResponse {})
}

/// The records that are no longer there.
fn gone(input: &DeliverEventsRequest, kind: &str) -> Vec<Uuid> {
    let told = input.events.iter().filter(|event| event.r#type == kind);
    told.filter_map(|event| id::parse(&event.entity_id)).collect()
}

/// The file as it is listed here.
fn record(told: Told<'_, Stored>, account: AccountId, at: &At<'_>, faults: &mut Faults) -> Option<Record> {
    let Told { event, data: stored, .. } = told;
    let place = [stored.service.as_str(), &stored.area, &stored.key].join("/");
    if Key::parse(account, &place).is_none() {
        let detail = "service, area and key must be lower-case letters, digits, hyphens and underscores";
        faults.add(&at.name("key"), Fault::BadFormat, detail);
    }
    let Some(created_at) = event.occurred_at.as_ref().and_then(chassis::time::from_timestamp) else {
        faults.add(at, Fault::NotATime, "occurred_at must be a time");
        return None;
    };
    let Stored { id, name, content_type, size, source, version, .. } = stored;
    Some(Record {
        id,
        content_type: file::media_type(&content_type, &name),
        name: file::safe_name(&name),
        size,
        key: place,
        source: Source { kind: source.r#type, id: Some(source.id), version },
        created_at,
    })
}

/// Keeps a file. Of a generated one only the newest version stays; events of different files come in any order.
async fn keep(tx: &mut Tx<'_>, stored: Record) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    if stored.source.version.is_some() {
        let generated = store::list_generated_locked(tx.db(), account, &stored.source).await?;
        if generated.iter().any(|other| other.source.version > stored.source.version) {
            return Ok(());
        }
        for old in generated.iter().filter(|other| other.source.version < stored.source.version) {
            if store::delete(tx.db(), account, old.id, now).await?.is_some() {
                tx.count(LIST, old.created_at, -1);
                tx.removed(file::AUDITED, old.id);
            }
        }
    }
    if store::insert(tx.db(), account, &stored).await? {
        tx.count(LIST, stored.created_at, 1);
        file::audit(tx, &stored);
    }
    Ok(())
}
