//! The writes of statuses: load, decide, store, record. An rpc that records nothing itself is recorded in
//! the log with its answer.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use proto::At;
use proto::api::Fault;
use proto::support::{CreateTicketStatusRequest, TicketStatus, UpdateTicketStatusRequest};

use super::store::{self, MAX_STATUSES};
use super::{BUILT_IN, Record};
use crate::error::Error;

const NOT_FOUND: Error = Error::NotFound("ticket status");
/// The kind of these records in the log.
pub(crate) const AUDIT_KIND: &str = "ticket_status";

/// Creates the built-in statuses of a new account.
pub(crate) async fn create_defaults(tx: &mut Tx<'_>) -> Result<(), Error> {
    let account = tx.account();
    let now = tx.now();
    for (position, name) in (1..).zip(BUILT_IN) {
        let id = tx.id();
        let record =
            Record { id, version: 1, name: name.to_owned(), active: true, position, updated_at: now };
        store::insert(tx.db(), account, &record).await?;
        tx.changed(AUDIT_KIND, record.id, &TicketStatus::from(record));
    }
    Ok(())
}

pub(crate) async fn create(tx: &mut Tx<'_>, input: &CreateTicketStatusRequest) -> Result<Record, Error> {
    let account = tx.account();
    let now = tx.now();
    if store::count(tx.db(), account).await? >= MAX_STATUSES {
        let detail = format!("an account can have {MAX_STATUSES} statuses; remove one first");
        tx.faults.add(&At::ROOT.name("name"), Fault::TooMany, detail);
    }
    tx.valid()?;
    let record = Record {
        id: tx.id(),
        version: 1,
        name: input.name.clone(),
        active: input.active.unwrap_or(true),
        position: input.order,
        updated_at: now,
    };
    store::insert(tx.db(), account, &record).await?;
    Ok(record)
}

pub(crate) async fn update(tx: &mut Tx<'_>, input: &UpdateTicketStatusRequest) -> Result<Record, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(&input.id).ok_or(NOT_FOUND)?;
    let mut record = store::find_locked(tx.db(), account, id).await?.ok_or(NOT_FOUND)?;
    let mask = UpdateMask::from(input.update_mask.as_ref());
    let before = (record.active, record.position);
    mask.put("active", &input.active, &mut record.active);
    mask.put("order", &input.order, &mut record.position);
    if before == (record.active, record.position) {
        tx.unaudited("it is as it was");
        return Ok(record);
    }
    record.version += 1;
    record.updated_at = tx.now();
    store::update(tx.db(), account, &record).await?;
    Ok(record)
}

pub(crate) async fn delete(tx: &mut Tx<'_>, id: &str) -> Result<(), Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(id).ok_or(NOT_FOUND)?;
    let usage = store::find_usage_locked(tx.db(), account, id).await?.ok_or(NOT_FOUND)?;
    if usage.in_use || BUILT_IN.contains(&usage.name.as_str()) {
        return Err(Error::StatusInUse);
    }
    store::delete(tx.db(), account, id).await?;
    tx.removed(AUDIT_KIND, id);
    Ok(())
}

/// Shows the statuses with these ids.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for id in uuids(ids) {
        if let Some(record) = store::find_locked(tx.db(), account, id).await? {
            shown.add(id, &TicketStatus::from(record));
        }
    }
    Ok(())
}
