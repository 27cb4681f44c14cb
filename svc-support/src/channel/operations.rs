//! The writes of channels: load, decide, store, record. An rpc that records nothing itself is recorded in
//! the log with its answer.

use chassis_base::id;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use proto::At;
use proto::api::Fault;
use proto::support::TicketChannelInput;

use super::store::{self, MAX_CHANNELS};
use super::{Record, Values, rules};
use crate::address::OwnDomain;
use crate::error::Error;

const NOT_FOUND: Error = Error::NotFound("ticket channel");
/// The kind of these records in the log.
pub(crate) const AUDIT_KIND: &str = "ticket_channel";

/// Creates the channel that a new account starts with.
pub(crate) async fn create_default(tx: &mut Tx<'_>, own: &OwnDomain) -> Result<(), Error> {
    let values = Values { name: "Support".to_owned(), active: true, position: 1, ..Values::default() };
    let account = tx.account();
    let record = insert(tx, values).await?;
    tx.changed(AUDIT_KIND, record.id, &record.into_proto(account, own));
    Ok(())
}

pub(crate) async fn create(tx: &mut Tx<'_>, given: &TicketChannelInput) -> Result<Record, Error> {
    let values = rules::read(given, &mut tx.faults);
    let account = tx.account();
    if store::count(tx.db(), account).await? >= MAX_CHANNELS {
        let detail = format!("an account can have {MAX_CHANNELS} channels; remove one first");
        tx.faults.add(&At::ROOT.name("channel"), Fault::TooMany, detail);
    }
    tx.valid()?;
    insert(tx, values).await
}

async fn insert(tx: &mut Tx<'_>, values: Values) -> Result<Record, Error> {
    let account = tx.account();
    let now = tx.now();
    let record = Record {
        id: tx.id(),
        version: 1,
        values,
        inbound_key: rand::random(),
        created_at: now,
        updated_at: now,
    };
    store::insert(tx.db(), account, &record).await?;
    Ok(record)
}

/// Replaces the values of a channel. Its inbound address never changes.
pub(crate) async fn update(tx: &mut Tx<'_>, id: &str, given: &TicketChannelInput) -> Result<Record, Error> {
    id::ignore_malformed(&mut tx.faults);
    let values = rules::read(given, &mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(id).ok_or(NOT_FOUND)?;
    let mut record = store::find_locked(tx.db(), account, id).await?.ok_or(NOT_FOUND)?;
    if record.values == values {
        tx.unaudited("it is as it was");
        return Ok(record);
    }
    record.values = values;
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
    if !store::delete(tx.db(), account, id).await? {
        return Err(NOT_FOUND);
    }
    tx.removed(AUDIT_KIND, id);
    Ok(())
}

/// Shows the channels with these ids.
pub(crate) async fn show(
    tx: &mut Tx<'_>,
    own: &OwnDomain,
    ids: &[String],
    shown: &mut Shown,
) -> Result<(), Error> {
    let account = tx.account();
    for id in uuids(ids) {
        if let Some(record) = store::find_locked(tx.db(), account, id).await? {
            shown.add(id, &record.into_proto(account, own));
        }
    }
    Ok(())
}
