//! What can be done with a document of any kind. The rpc files only convert messages. Each function is one operation
//! inside a write transaction; the client it may need has been looked up before.

mod accept;
mod create;
mod credit;
mod delete;
mod family;
mod finalize;
mod patch;
mod project;
mod send;
mod view;

pub use accept::accept;
pub use create::{New, check_client, create};
pub use credit::credit;
pub use delete::delete;
pub use family::{Family, settle};
pub use finalize::finalize;
pub use patch::patch;
pub use project::set_project;
pub use send::send;
pub use view::view;

use chassis_data::Tx;
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use proto::billing::Document;
use proto::relations::Relation;
use serde_json::Value;
use uuid::Uuid;

use super::rules::amounts::Row;
use super::store::{self, NewHistory};
use super::{Kind, Links, Record, answer};
use crate::Error;

/// What an operation on an existing document needs besides the request.
#[derive(Clone)]
pub struct Known {
    pub kind: Kind,
    /// The client of a draft that is to become final.
    pub client: Option<Relation>,
    pub links: Links,
}

/// The document as it is now.
async fn answer(tx: &mut Tx<'_>, known: &Known, id: Uuid) -> Result<Document, Error> {
    let account = tx.account();
    let found = store::find(tx.db(), account, known.kind, id).await?;
    let full = found.ok_or(Error::NotFound(known.kind.name()))?;
    Ok(answer::document(account, &known.links, &full))
}

/// Keeps a document in the audit log as it is now.
fn audit(tx: &mut Tx<'_>, record: &Record) {
    let image = answer::header(tx.account(), record);
    tx.changed(record.kind.name(), record.id, &image);
}

/// The same for a new one, with its rows.
fn audit_new(tx: &mut Tx<'_>, record: &Record, rows: &[Row]) {
    audit(tx, record);
    tx.changed(&format!("{}_rows", record.kind.name()), record.id, &answer::only_rows(record, rows));
}

/// Keeps what happened to a document.
pub async fn log(
    tx: &mut Tx<'_>,
    document: Uuid,
    event: &'static str,
    data: Value,
    mail: Option<Uuid>,
) -> Result<(), Error> {
    let (account, now, id) = (tx.account(), tx.now(), tx.id());
    // A visitor of a page has no name.
    let named = tx.caller().filter(|caller| !caller.identity.is_public());
    let actor = named.map(|caller| caller.identity.actor_name.clone()).unwrap_or_default();
    let entry = NewHistory { document, id, event, actor: &actor, data: data.to_string(), mail };
    store::log(tx.db(), account, entry, now).await
}

/// A day as a time, the way `paid_at` shows it.
fn at_midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}
