//! Changes of hour entries.

use std::collections::HashMap;

use chassis_base::id;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use proto::At;
use proto::api::Fault;
use proto::work::{HourEntry, HourInput, HourStatus, LogHoursRequest};
use uuid::Uuid;

use super::rules::{self, Transition};
use super::store::{self, StatusChange};
use super::{Record, Values};
use crate::error::Error;
use crate::project;

pub(super) const NOT_FOUND: Error = Error::NotFound("hour entry");
const PROJECT_NOT_FOUND: Error = Error::NotFound("project");
pub(crate) const AUDIT_KIND: &str = "hour_entry";

/// Logs hours on a project, as a draft.
pub(super) async fn create(tx: &mut Tx<'_>, input: &LogHoursRequest) -> Result<Record, Error> {
    let account = tx.account();
    let now = tx.now();
    let given = input.entry.as_ref();
    let values = read(tx, given);
    let in_entry = given.map(|given| given.project_id.as_str()).filter(|id| !id.is_empty());
    let project_id = in_entry.unwrap_or(&input.project_id);
    let entry = At::ROOT.name("entry");
    let at = if in_entry.is_none() && !input.project_id.is_empty() { At::ROOT } else { entry };
    let at = at.name("project_id");
    if project_id.is_empty() {
        tx.faults.add(&at, Fault::Required, "project_id is required");
    }
    let project = project::check_reference(tx, &at, project_id).await?;
    tx.valid()?;
    let (values, project) = values.zip(project).ok_or(PROJECT_NOT_FOUND)?;
    let record = Record {
        id: tx.id(),
        version: 1,
        project,
        values,
        status: HourStatus::Draft,
        reason: String::new(),
        created_at: now,
        updated_at: now,
    };
    store::insert(tx.db(), account, &record).await?;
    Ok(record)
}

/// Replaces an entry. A rejected entry becomes a draft again.
pub(super) async fn update(tx: &mut Tx<'_>, id: &str, given: Option<&HourInput>) -> Result<Record, Error> {
    id::ignore_malformed(&mut tx.faults);
    let account = tx.account();
    let values = read(tx, given);
    let found = find_locked(tx, id).await?;
    let given_project = given.map(|given| given.project_id.as_str()).filter(|id| !id.is_empty());
    if let (Some(project), Some(record)) = (given_project, &found)
        && id::parse(project) != Some(record.project)
    {
        let at = At::ROOT.name("entry");
        let detail = "project_id cannot be changed: delete the hours and log them on the other project";
        tx.faults.add(&at.name("project_id"), Fault::NotAllowed, detail);
    }
    // Faults of the body are reported before an id that does not exist.
    tx.valid()?;
    let (mut record, values) = found.zip(values).ok_or(NOT_FOUND)?;
    rules::check_editable(record.status)?;
    if values != record.values || record.status != HourStatus::Draft {
        record = Record {
            version: record.version + 1,
            values,
            status: HourStatus::Draft,
            reason: String::new(),
            updated_at: tx.now(),
            ..record
        };
        store::update(tx.db(), account, &record).await?;
    } else {
        tx.unaudited("it is as it was");
    }
    Ok(record)
}

pub(super) async fn delete(tx: &mut Tx<'_>, id: &str) -> Result<(), Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let record = find_locked(tx, id).await?.ok_or(NOT_FOUND)?;
    rules::check_removable(record.status)?;
    store::delete(tx.db(), account, record.id).await?;
    tx.removed(AUDIT_KIND, record.id);
    Ok(())
}

/// Gives all these entries the status that the transition leads to, or none of them. `reason` is that of a rejection.
/// Returns the entries in the order of `ids`.
pub(super) async fn change_status(
    tx: &mut Tx<'_>,
    transition: Transition,
    ids: &[String],
    reason: &str,
) -> Result<Vec<Record>, Error> {
    let account = tx.account();
    let now = tx.now();
    let requested: Vec<Uuid> = ids.iter().filter_map(|id| id::parse(id)).collect();
    // Locked in the order of their ids: two requests with the same entries in different orders cannot block each other.
    let found = store::list_locked(tx.db(), account, &requested).await?;
    let mut found: HashMap<Uuid, Record> = found.into_iter().map(|record| (record.id, record)).collect();
    let at = At::ROOT.name("ids");
    for (index, text) in ids.iter().enumerate() {
        if !id::parse(text).is_some_and(|id| found.contains_key(&id)) {
            let detail = "ids must be those of hours of this account";
            tx.faults.add(&at.index(index), Fault::UnknownReference, detail);
        }
    }
    tx.valid()?;
    let mut changed = Vec::new();
    for id in &requested {
        let Some(record) = found.get_mut(id) else { continue };
        if transition.changes(record.status)? {
            record.status = transition.target();
            reason.clone_into(&mut record.reason);
            record.version += 1;
            record.updated_at = now;
            changed.push(record.id);
            tx.changed(AUDIT_KIND, record.id, &HourEntry::from(record.clone()));
        }
    }
    if changed.is_empty() {
        tx.unaudited("they are as they were");
    } else {
        let change = StatusChange { status: transition.target(), reason };
        store::set_status(tx.db(), account, &changed, change, now).await?;
    }
    Ok(requested.iter().filter_map(|id| found.get(id).cloned()).collect())
}

fn read(tx: &mut Tx<'_>, given: Option<&HourInput>) -> Option<Values> {
    let today = tx.today();
    given.and_then(|given| rules::read(given, today, &mut tx.faults))
}

async fn find_locked(tx: &mut Tx<'_>, id: &str) -> Result<Option<Record>, Error> {
    let account = tx.account();
    match id::parse(id) {
        Some(id) => Ok(store::list_locked(tx.db(), account, &[id]).await?.pop()),
        None => Ok(None),
    }
}

/// Shows the entries with these ids.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for record in store::list_locked(tx.db(), account, &uuids(ids)).await? {
        shown.add(record.id, &HourEntry::from(record));
    }
    Ok(())
}
