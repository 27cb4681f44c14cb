//! What can be done with a ticket. The rpc file only converts messages; mail that comes in uses the same.

use chassis::mask::Named;
use chassis::{Tx, id, numbering};
use proto::support::{Ticket, TicketInput, TicketPatch};
use uuid::Uuid;

use super::{LIST, Record, Source, Values, events, rules, store};
use crate::Error;
use crate::clients;
use crate::message::Automatic;
use crate::status::rules::{CLOSED, of_a_new_ticket};
use crate::{channel, status};

pub const UNKNOWN: Error = Error::NotFound("ticket");

pub async fn create(tx: &mut Tx<'_>, given: &TicketInput, client: &clients::Named) -> Result<Record, Error> {
    let values = rules::create(given, client, &mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let channel = channel::store::find_for(tx.db(), account, None).await?;
    let source = (Source::Api, Automatic::No);
    insert(tx, values, source, channel.map(|channel| channel.id)).await
}

/// Stores a new ticket and tells of it: where it comes from, and whether a person wrote what it begins with.
pub async fn insert(
    tx: &mut Tx<'_>,
    values: Values,
    (source, automatic): (Source, Automatic),
    channel_id: Option<Uuid>,
) -> Result<Record, Error> {
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    let active = status::store::list_active_names(tx.db(), account).await?;
    let status = of_a_new_ticket(&active).to_owned();
    // The counter stays locked until the transaction ends, so it comes late.
    let number = rules::number(numbering::next(tx.db(), account, LIST).await?);
    let record = Record {
        id,
        version: 1,
        number,
        values,
        closed_at: (status == CLOSED).then_some(now),
        status,
        source,
        channel_id,
        reply_secret: rand::random(),
        message_count: 0,
        last_message_at: None,
        created_at: now,
        updated_at: now,
    };
    store::insert(tx.db(), account, &record).await?;
    tx.count(LIST, now, 1);
    events::created(tx, &record, automatic);
    audit(tx, &record);
    Ok(record)
}

/// Changes what the mask names; without a mask, everything. A change of nothing leaves no trace.
pub async fn update(
    tx: &mut Tx<'_>,
    id: &str,
    given: &TicketPatch,
    named: Named<'_>,
    client: &clients::Named,
) -> Result<Record, Error> {
    id::forgive(&mut tx.faults);
    rules::check_mask(named, &mut tx.faults);
    let (account, now) = (tx.account(), tx.now());
    let found = match id::parse(id) {
        Some(id) => store::find_locked(tx.db(), account, id).await?,
        None => None,
    };
    let Some(mut record) = found else {
        // The faults of the body come before an unknown id, those that need other records after it.
        let nobody = clients::Named::Nobody;
        rules::patch(named, given, &Values::default(), &nobody, &mut tx.faults);
        tx.valid()?;
        return Err(UNKNOWN);
    };
    let values = rules::patch(named, given, &record.values, client, &mut tx.faults);
    let status = if named.has("status") && given.status != record.status {
        let active = status::store::list_active_names(tx.db(), account).await?;
        rules::check_status(&given.status, &active, &mut tx.faults);
        given.status.clone()
    } else {
        record.status.clone()
    };
    tx.valid()?;
    if values == record.values && status == record.status {
        return Ok(record);
    }
    record.values = values;
    record.version += 1;
    record.updated_at = now;
    let from = move_to(&mut record, status);
    store::update(tx.db(), account, &record).await?;
    events::status_changed(tx, &record, &from, Automatic::No);
    audit(tx, &record);
    Ok(record)
}

/// Keeps a ticket in the audit log as it is now.
pub fn audit(tx: &mut Tx<'_>, record: &Record) {
    tx.changed("ticket", record.id, &Ticket::from(record.clone()));
}

/// Gives a ticket another status, and tells which it had. `updated_at` is the time of the change.
pub fn move_to(record: &mut Record, status: String) -> String {
    record.closed_at = (status == CLOSED).then(|| record.closed_at.unwrap_or(record.updated_at));
    std::mem::replace(&mut record.status, status)
}
