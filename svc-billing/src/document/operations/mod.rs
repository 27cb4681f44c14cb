//! What writes do to documents of every kind. Each function is one operation inside a write transaction. The client that
//! it may need belongs to another service and is fetched before the transaction begins.

mod accept;
mod create;
mod credit;
mod delete;
mod delivery;
mod family;
mod finalize;
mod follow_client;
mod forget_client;
mod number;
mod patch;
mod pdf;
mod project;
mod send;
mod view;

pub(crate) use accept::accept;
pub(crate) use create::{Ahead, New, check_client, create, create_family};
pub(crate) use credit::credit;
pub(crate) use delete::delete;
pub(crate) use delivery::record_delivery;
pub(crate) use family::{Family, settle};
pub(crate) use finalize::finalize;
pub(crate) use follow_client::follow_client;
pub(crate) use forget_client::forget_client;
pub(crate) use patch::patch;
pub(crate) use pdf::{
    FileLocation, NewPdf, PDF_FAILED, PdfFailure, StoredPdf, record_new_pdf, record_pdf_failure,
    record_stored_pdf, record_stored_pdfs,
};
pub(crate) use project::set_project;
pub(crate) use send::{SendContext, send};
pub(crate) use view::view;

use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use proto::relations::Relation;
use serde_json::Value;
use uuid::Uuid;

use super::store::{self, NewHistory};
use super::{Kind, Links, message};
use crate::error::Error;

/// What an operation on an existing document needs besides the request.
#[derive(Clone)]
pub(crate) struct OperationContext {
    pub kind: Kind,
    /// The client of a draft that is to become final.
    pub client: Option<Relation>,
    pub links: Links,
}

/// Writes documents to the log as they are shown after the changes of this transaction. To be called when all of these are
/// stored, for documents that were changed without their [`Family`].
async fn log_changed(tx: &mut Tx<'_>, links: &Links, ids: &[Uuid]) -> Result<(), Error> {
    let account = tx.account();
    if ids.is_empty() {
        return Ok(());
    }
    for full in store::list_full(tx.db(), account, ids).await? {
        let shown = message::document(account, links, &full);
        tx.changed(full.record.kind.name(), full.record.id, &shown);
    }
    Ok(())
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

/// Shows the documents with these ids.
pub(crate) async fn show(
    tx: &mut Tx<'_>,
    links: &Links,
    ids: &[String],
    shown: &mut Shown,
) -> Result<(), Error> {
    let account = tx.account();
    for full in store::list_full(tx.db(), account, &uuids(ids)).await? {
        shown.add(full.record.id, &message::document(account, links, &full));
    }
    Ok(())
}
