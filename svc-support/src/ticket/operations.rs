//! The writes of tickets: load, decide, store, record. Requests and incoming mail share them.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::log::snapshot::{Shown, uuids};
use chassis_data::{LazyTx, Plan, Tx};
use proto::support::{Ticket, TicketInput, TicketPatch};
use uuid::Uuid;

use super::{LIST, Record, Source, Values, events, rules, store};
use crate::automatic::Automatic;
use crate::clients::Lookup;
use crate::error::Error;
use crate::status::rules::{CLOSED, of_a_new_ticket};
use crate::{channel, status};

pub(super) const NOT_FOUND: Error = Error::NotFound("ticket");
/// The kind of these records in the log.
pub(crate) const AUDIT_KIND: &str = "ticket";

pub(super) async fn create(tx: &mut Tx<'_>, given: &TicketInput, client: &Lookup) -> Result<Record, Error> {
    let values = rules::create(given, client, &mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let channel = channel::store::find_for(tx.db(), account, None).await?;
    let channel_id = channel.map(|channel| channel.id);
    insert(tx, NewTicket { values, source: Source::Api, automatic: Automatic::No, channel_id }).await
}

/// A ticket that is not stored yet.
pub(crate) struct NewTicket {
    pub values: Values,
    pub source: Source,
    /// Whether a program wrote the message that the ticket is created for.
    pub automatic: Automatic,
    pub channel_id: Option<Uuid>,
}

/// Stores a new ticket and emits its event.
pub(crate) async fn insert(tx: &mut Tx<'_>, new: NewTicket) -> Result<Record, Error> {
    let NewTicket { values, source, automatic, channel_id } = new;
    let account = tx.account();
    let id = tx.id();
    let now = tx.now();
    let active = status::store::list_active_names(tx.db(), account).await?;
    let status = of_a_new_ticket(&active).to_owned();
    // The counter of the numbers stays locked until the transaction ends: that keeps the numbers free of gaps, and makes
    // other new tickets of the account wait. So it comes after all other reads.
    let number = rules::number(tx.next_number(LIST).await?);
    let record = Record {
        id,
        version: 1,
        timed_events: 0,
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
    tx.list(&record.listing());
    tx.refers_to(record.values.client_id);
    events::created(tx, &record, automatic);
    record_change(tx, &record);
    Ok(record)
}

/// Changes the fields that the mask names; without a mask, all fields. An update that changes no value stores nothing and
/// emits no event.
pub(super) async fn update(
    tx: &mut LazyTx<'_>,
    id: &str,
    given: &TicketPatch,
    mask: UpdateMask<'_>,
    client: &Lookup,
) -> Result<Record, Error> {
    id::ignore_malformed(&mut tx.faults);
    rules::check_mask(mask, &mut tx.faults);
    let account = tx.account();
    let Some(mut record) = find(tx, id).await? else {
        // Faults of the body itself are reported before an id that does not exist; the client and the status are
        // checked only for a ticket that does.
        rules::patch(mask, given, &Values::default(), &Lookup::NotGiven, &mut tx.faults);
        tx.valid()?;
        return Err(NOT_FOUND);
    };
    let values = rules::patch(mask, given, &record.values, client, &mut tx.faults);
    let status = if mask.has("status") && given.status != record.status {
        let list = async |connection: &mut _| status::store::list_active_names(connection, account).await;
        let active = tx.query(list).await?;
        rules::check_status(&given.status, &active, &mut tx.faults);
        given.status.clone()
    } else {
        record.status.clone()
    };
    tx.valid()?;
    if values == record.values && status == record.status {
        tx.unaudited("it is as it was");
        return Ok(record);
    }
    if values.client_id != record.values.client_id {
        tx.refers_to(values.client_id);
    }
    let before = record.listing();
    record.values = values;
    tx.relist(&before, &record.listing());
    let since = record.version;
    count_change(tx, &mut record);
    let from = set_status(tx, &mut record, status);
    tx.write_last(store::update(account, &record, since))?;
    events::status_changed(tx, &record, &from, Automatic::No);
    record_change(tx, &record);
    Ok(record)
}

/// A ticket that is about to change, with a lock if the transaction is open.
pub(crate) async fn find(tx: &mut LazyTx<'_>, id: &str) -> Result<Option<Record>, Error> {
    let account = tx.account();
    let Some(id) = id::parse(id) else { return Ok(None) };
    match tx.opened() {
        Some(connection) => store::find_locked(connection, account, id).await,
        None => tx.read(async |connection| store::find(connection, account, id).await).await,
    }
}

/// Counts a change of a ticket that was stored before: once for each transaction.
pub(crate) fn count_change(plan: &Plan<'_>, record: &mut Record) {
    record.version += 1;
    record.updated_at = plan.now();
}

/// Records the current ticket in the log.
pub(crate) fn record_change(plan: &mut Plan<'_>, record: &Record) {
    plan.changed(AUDIT_KIND, record.id, &Ticket::from(record.clone()));
}

/// Gives a ticket a status and returns its former status. The caller has set `updated_at` to the time of the change.
pub(crate) fn set_status(plan: &mut Plan<'_>, record: &mut Record, status: String) -> String {
    let before = record.listing();
    record.closed_at = (status == CLOSED).then(|| record.closed_at.unwrap_or(record.updated_at));
    let from = std::mem::replace(&mut record.status, status);
    plan.relist(&before, &record.listing());
    from
}

/// Forgets who the client of a locked ticket is, whose name is this now.
pub(crate) async fn forget_client(tx: &mut Tx<'_>, mut record: Record, name: &str) -> Result<(), Error> {
    let values = Values {
        subject: name.to_owned(),
        client_name: name.to_owned(),
        client_email: String::new(),
        ..record.values.clone()
    };
    if values == record.values {
        return Ok(());
    }
    let (account, since) = (tx.account(), record.version);
    record.values = values;
    count_change(tx, &mut record);
    store::update(account, &record, since).execute(tx.db()).await?;
    chassis_work::mail::forget(tx, &[mail_reference(record.id)]).await?;
    tx.forget_history(AUDIT_KIND, &[record.id.to_string()]).await?;
    record_change(tx, &record);
    Ok(())
}

/// What the mails of a ticket have as their reference.
pub(crate) fn mail_reference(ticket: Uuid) -> String {
    format!("ticket:{ticket}")
}

/// Shows the tickets with these ids.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for id in uuids(ids) {
        if let Some(record) = store::find(tx.db(), account, id).await? {
            shown.add(id, &Ticket::from(record));
        }
    }
    Ok(())
}
