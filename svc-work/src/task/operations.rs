//! Changes of tasks.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::log::snapshot::{Shown, uuids};
use chassis_data::{LazyTx, Plan, Tx};
use proto::At;
use proto::work::{Task, TaskInput, TaskPatch};
use uuid::Uuid;

use super::{Record, Related, rules, store};
use crate::error::Error;
use crate::project;

const NOT_FOUND: Error = Error::NotFound("task");
pub(crate) const AUDIT_KIND: &str = "task";

/// Creates a task. The references to other services were looked up before the transaction.
pub(super) async fn create(tx: &mut Tx<'_>, given: &TaskInput) -> Result<Record, Error> {
    let at = At::ROOT.name("task");
    let values = rules::create(given);
    let related = Related {
        client: id::parse(&given.client_id),
        project: project::check_reference(tx, &at.name("project_id"), &given.project_id).await?,
        deal: id::parse(&given.deal_id),
    };
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    let record = Record {
        id: tx.id(),
        version: 1,
        values,
        related,
        completed_at: None,
        created_at: now,
        updated_at: now,
    };
    tx.write_last(store::insert(account, &record))?;
    tx.list(&record.listing());
    tx.refers_to(record.related.client);
    record_change(tx, &record);
    Ok(record)
}

/// Changes what the mask names; without a mask, everything. An update that changes no value stores nothing.
pub(super) async fn update(
    tx: &mut LazyTx<'_>,
    id: &str,
    given: &TaskPatch,
    named: UpdateMask<'_>,
) -> Result<Record, Error> {
    id::ignore_malformed(&mut tx.faults);
    let account = tx.account();
    let found = find(tx, id).await?;
    let current = found.as_ref().map(|record| record.values.clone());
    let mut values = current.unwrap_or_else(|| rules::create(&TaskInput::default()));
    rules::change(named, given, &mut values, &mut tx.faults);
    // Faults of the body are reported before an id that does not exist.
    tx.valid()?;
    let mut record = found.ok_or(NOT_FOUND)?;
    if values == record.values {
        tx.unaudited("it is as it was");
        return Ok(record);
    }
    let before = record.listing();
    record.values = values;
    record.version += 1;
    record.updated_at = tx.now();
    tx.write_last(store::update(account, &record))?;
    tx.relist(&before, &record.listing());
    record_change(tx, &record);
    Ok(record)
}

pub(super) async fn delete(tx: &mut Tx<'_>, id: &str) -> Result<(), Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(id).ok_or(NOT_FOUND)?;
    let record = store::delete(tx.db(), account, id).await?.ok_or(NOT_FOUND)?;
    tx.unlist(&record.listing());
    tx.removed(AUDIT_KIND, id);
    Ok(())
}

/// Completes a task or opens it again. A repetition keeps the version and the times of the first call.
pub(super) async fn set_completed(tx: &mut LazyTx<'_>, id: &str, completed: bool) -> Result<Record, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let mut record = find(tx, id).await?.ok_or(NOT_FOUND)?;
    if record.completed_at.is_some() == completed {
        tx.unaudited("it is as it was");
        return Ok(record);
    }
    let before = record.listing();
    record.version += 1;
    record.updated_at = tx.now();
    record.completed_at = completed.then_some(record.updated_at);
    tx.write_last(store::update(account, &record))?;
    tx.relist(&before, &record.listing());
    record_change(tx, &record);
    Ok(record)
}

/// Finds a task that is about to change, with a lock if the transaction is open.
async fn find(tx: &mut LazyTx<'_>, id: &str) -> Result<Option<Record>, Error> {
    let account = tx.account();
    let Some(id) = id::parse(id) else { return Ok(None) };
    match tx.opened() {
        Some(connection) => store::find_locked(connection, account, id).await,
        None => tx.read(async |connection| store::find(connection, account, id).await).await,
    }
}

/// Removes the references of tasks to deals that were deleted.
pub(crate) async fn clear_deals(tx: &mut Tx<'_>, deals: &[Uuid]) -> Result<(), Error> {
    if deals.is_empty() {
        return Ok(());
    }
    let account = tx.account();
    let now = tx.now();
    for record in store::clear_deals(tx.db(), account, deals, now).await? {
        record_change(tx, &record);
    }
    Ok(())
}

/// Records the current task in the log.
fn record_change(tx: &mut Plan<'_>, record: &Record) {
    tx.changed(AUDIT_KIND, record.id, &Task::from(record.clone()));
}

/// Shows the tasks with these ids.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for id in uuids(ids) {
        if let Some(record) = store::find(tx.db(), account, id).await? {
            shown.add(id, &Task::from(record));
        }
    }
    Ok(())
}
