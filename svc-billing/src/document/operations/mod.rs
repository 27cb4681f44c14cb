//! What writes do to documents of every kind. Each function is one operation inside a write transaction. The client that
//! it may need belongs to another service and is fetched before the transaction begins.

mod accept;
mod create;
mod credit;
mod delete;
mod family;
mod finalize;
mod patch;
mod pdf;
mod project;
mod send;
mod view;

pub(crate) use accept::accept;
pub(crate) use create::{New, check_client, create};
pub(crate) use credit::credit;
pub(crate) use delete::delete;
pub(crate) use family::{Family, settle};
pub(crate) use finalize::finalize;
pub(crate) use patch::patch;
pub(crate) use pdf::{FileLocation, PdfResult, StoredPdf, record_pdf_result, record_stored_pdf};
pub(crate) use project::set_project;
pub(crate) use send::{SendContext, send};
pub(crate) use view::view;

use chassis_data::Tx;
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use proto::billing::Document;
use proto::relations::Relation;
use serde_json::Value;
use uuid::Uuid;

use super::rules::amounts::Row;
use super::store::{self, NewHistory};
use super::{Kind, Links, Record, message};
use crate::error::Error;

/// What an operation on an existing document needs besides the request.
#[derive(Clone)]
pub(crate) struct OperationContext {
    pub kind: Kind,
    /// The client of a draft that is to become final.
    pub client: Option<Relation>,
    pub links: Links,
}

/// The document with the changes of this transaction, as a message.
async fn load_message(tx: &mut Tx<'_>, context: &OperationContext, id: Uuid) -> Result<Document, Error> {
    let account = tx.account();
    let found = store::find(tx.db(), account, context.kind, id).await?;
    let full = found.ok_or(Error::NotFound(context.kind.name()))?;
    Ok(message::document(account, &context.links, &full))
}

/// Records a document in the log.
fn audit(tx: &mut Tx<'_>, record: &Record) {
    let image = message::audit_image(tx.account(), record);
    tx.changed(record.kind.name(), record.id, &image);
}

/// Records a new document with its rows.
fn audit_new(tx: &mut Tx<'_>, record: &Record, rows: &[Row]) {
    audit(tx, record);
    let kind = format!("{}_rows", record.kind.name());
    tx.changed(&kind, record.id, &message::audit_image_of_rows(record, rows));
}

/// Adds an entry to a document's history. `mail` is the queued mail that the entry is about.
pub(crate) async fn record_history(
    tx: &mut Tx<'_>,
    document: Uuid,
    event: &'static str,
    data: Value,
    mail: Option<Uuid>,
) -> Result<(), Error> {
    let (account, now, id) = (tx.account(), tx.now(), tx.id());
    // A visitor of a public page has no name.
    let named = tx.caller().filter(|caller| !caller.identity.is_public());
    let actor = named.map(|caller| caller.identity.actor_name.clone()).unwrap_or_default();
    let entry = NewHistory { document, id, event, actor: &actor, data: data.to_string(), mail };
    store::insert_history(tx.db(), account, entry, now).await
}

/// A day as `paid_at` stores it: midnight in UTC.
fn at_midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}
