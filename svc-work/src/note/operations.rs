//! Changes of notes.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use proto::At;
use proto::api::Fault;
use proto::work::{Note, NoteInput};
use uuid::Uuid;

use super::{Deleted, Record, Related, listing, store};
use crate::error::Error;
use crate::project;

const NOT_FOUND: Error = Error::NotFound("note");
pub(crate) const AUDIT_KIND: &str = "note";

/// Creates a note. The references to other services were looked up before the transaction.
pub(super) async fn create(tx: &mut Tx<'_>, given: &NoteInput) -> Result<Record, Error> {
    let at = At::ROOT.name("note");
    let related = Related {
        client: id::parse(&given.client_id),
        invoice: id::parse(&given.invoice_id),
        project: project::check_reference(tx, &at.name("project_id"), &given.project_id).await?,
        deal: id::parse(&given.deal_id),
    };
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    let record = Record {
        id: tx.id(),
        version: 1,
        body: given.body.clone(),
        related,
        created_at: now,
        updated_at: now,
    };
    store::insert(tx.db(), account, &record).await?;
    tx.list(&listing(now, record.id));
    tx.refers_to(record.related.client);
    tx.changed(AUDIT_KIND, record.id, &Note::from(record.clone()));
    Ok(record)
}

/// Replaces the text. Nothing else of a note can be changed. The text that it has already changes nothing.
pub(super) async fn update(
    tx: &mut Tx<'_>,
    id: &str,
    body: &str,
    named: UpdateMask<'_>,
) -> Result<Record, Error> {
    id::ignore_malformed(&mut tx.faults);
    named.check(|name| name == "body", "note", &mut tx.faults);
    if !named.has("body") {
        let at = At::ROOT.name("note");
        tx.faults.add(&at.name("body"), Fault::Required, "body is required");
    }
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    let id = id::parse(id).ok_or(NOT_FOUND)?;
    if let Some(changed) = store::update(tx.db(), account, id, body, now).await? {
        return Ok(changed);
    }
    let record = store::find(tx.db(), account, id).await?.ok_or(NOT_FOUND)?;
    tx.unaudited("it is as it was");
    Ok(record)
}

pub(super) async fn delete(tx: &mut Tx<'_>, id: &str) -> Result<(), Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(id).ok_or(NOT_FOUND)?;
    let created_at = store::delete(tx.db(), account, id).await?.ok_or(NOT_FOUND)?;
    tx.unlist(&listing(created_at, id));
    tx.removed(AUDIT_KIND, id);
    Ok(())
}

/// Removes the references of notes to records that were deleted.
pub(crate) async fn clear_references(tx: &mut Tx<'_>, deleted: &Deleted<'_>) -> Result<(), Error> {
    if deleted.deals.is_empty() && deleted.invoices.is_empty() {
        return Ok(());
    }
    let account = tx.account();
    let now = tx.now();
    for record in store::clear_references(tx.db(), account, deleted, now).await? {
        tx.changed(AUDIT_KIND, record.id, &Note::from(record));
    }
    Ok(())
}

/// Deletes the notes about these clients, of whom nobody is to know who they are.
pub(crate) async fn forget_clients(tx: &mut Tx<'_>, clients: &[Uuid]) -> Result<(), Error> {
    if clients.is_empty() {
        return Ok(());
    }
    let account = tx.account();
    let deleted = store::delete_of_clients(tx.db(), account, clients).await?;
    let ids: Vec<String> = deleted.iter().map(|(id, _)| id.to_string()).collect();
    tx.forget_history(AUDIT_KIND, &ids).await?;
    for (id, created_at) in deleted {
        tx.unlist(&listing(created_at, id));
        tx.removed(AUDIT_KIND, id);
    }
    Ok(())
}

/// Shows the notes with these ids.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for id in uuids(ids) {
        if let Some(record) = store::find(tx.db(), account, id).await? {
            shown.add(id, &Note::from(record));
        }
    }
    Ok(())
}
