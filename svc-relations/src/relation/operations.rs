//! The writes of clients and suppliers: load, decide, store, record.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::log::snapshot::{Shown, uuids};
use chassis_data::{LazyTx, Plan, Tx};
use chassis_rpc::references::Withdrawal;
use proto::At;
use proto::api::Fault;
use proto::relations::{ClientInput, Relation};

use super::rules::{self, InputContext};
use super::{Record, Role, events, store};
use crate::error::Error;
use crate::link;

pub(super) async fn create(tx: &mut LazyTx<'_>, role: Role, given: ClientInput) -> Result<Relation, Error> {
    let (account, settings) = (tx.account(), tx.settings());
    let at = At::ROOT.name(role.name());
    let context = InputContext { role, mask: UpdateMask::All, default_country: &settings.country, at: &at };
    let mut values = ClientInput::default();
    rules::apply(&context, given, &mut values, &mut tx.faults);
    rules::check_name(&context, &values, &mut tx.faults);
    tx.valid()?;

    refuse_taken(tx, role, &values).await?;
    let debtor_number = match role {
        Role::Client => rules::debtor_number(tx.number(store::DEBTORS).await?),
        Role::Supplier => String::new(),
    };
    let now = tx.now();
    let record = Record {
        id: tx.id(),
        version: 1,
        values,
        debtor_number,
        created_at: now,
        updated_at: now,
        anonymized_at: None,
    };
    tx.write_last(store::insert(account, role, &record))?;
    tx.list(&record.listing(role));
    events::created(tx, role, &record);
    Ok(record_change(tx, role, record))
}

/// Changes the fields that the mask names; without a mask, all fields. An update that changes no value stores nothing
/// and emits no event.
pub(super) async fn update(
    tx: &mut LazyTx<'_>,
    role: Role,
    id: &str,
    given: ClientInput,
    mask: Option<&prost_types::FieldMask>,
) -> Result<Relation, Error> {
    let settings = tx.settings();
    let at = At::ROOT.name(role.name());
    let context =
        InputContext { role, mask: UpdateMask::from(mask), default_country: &settings.country, at: &at };
    id::ignore_malformed(&mut tx.faults);
    rules::check_mask(&context, &mut tx.faults);
    // An empty update is allowed for clients and refused for suppliers.
    if role == Role::Supplier && mask.is_some_and(|mask| mask.paths.is_empty()) {
        tx.faults.add(&at, Fault::NoField, "send at least one field of a supplier");
    }

    let Some(mut record) = find(tx, role, id).await? else {
        // Faults of the body are reported before an id that does not exist, so the body is checked against an empty
        // record.
        let mut empty = ClientInput { country: context.default_country.to_owned(), ..ClientInput::default() };
        rules::apply(&context, given, &mut empty, &mut tx.faults);
        tx.valid()?;
        return Err(Error::NotFound(role.name()));
    };
    let before = record.listing(role);
    let changed = rules::apply(&context, given, &mut record.values, &mut tx.faults);
    rules::check_name(&context, &record.values, &mut tx.faults);
    tx.valid()?;
    if changed.is_empty() {
        return Ok(record.into());
    }

    if record.anonymized_at.is_some() {
        return Err(Error::Anonymized);
    }

    let account = tx.account();
    if changed.contains(&"external_id") {
        refuse_taken(tx, role, &record.values).await?;
    }
    record.version += 1;
    record.updated_at = tx.now();
    tx.write_last(store::update(account, role, &record))?;
    tx.relist(&before, &record.listing(role));
    events::updated(tx, role, &record, &changed);
    Ok(record_change(tx, role, record))
}

/// Deletes a client that was withdrawn from the other services, with its links.
pub(super) async fn delete_client(tx: &mut Tx<'_>, id: &str, withdrawal: &Withdrawal) -> Result<(), Error> {
    let (account, record) = (tx.account(), find_client(tx, id).await?);
    check_withdrawn(withdrawal)?;
    link::operations::unlink(tx, record.id).await?;
    store::delete(tx.db(), account, Role::Client, record.id).await?;
    tx.unlist(&record.listing(Role::Client));
    tx.removed(Role::Client.name(), record.id);
    Ok(())
}

/// Forgets who a client is that was withdrawn from the other services. They forget what they know of it when they receive the
/// event.
pub(super) async fn anonymize(tx: &mut Tx<'_>, id: &str, withdrawal: &Withdrawal) -> Result<Relation, Error> {
    let (account, now, mut record) = (tx.account(), tx.now(), find_client(tx, id).await?);
    if record.anonymized_at.is_some() {
        tx.unaudited("it is as it was");
        return Ok(record.into());
    }
    check_withdrawn(withdrawal)?;
    let before = record.listing(Role::Client);
    let name = rules::anonymous_name(&tx.settings().country, &record.debtor_number);
    let changed = rules::anonymize(name, &mut record.values);
    record.version += 1;
    record.updated_at = now;
    record.anonymized_at = Some(now);
    link::operations::forget_links(tx, record.id).await?;
    store::update(account, Role::Client, &record).execute(tx.db()).await?;
    store::set_anonymized(tx.db(), account, &record).await?;
    tx.relist(&before, &record.listing(Role::Client));
    tx.forget_history(Role::Client.name(), &[record.id.to_string()]).await?;
    tx.forget_mentions(record.id).await?;
    events::anonymized(tx, &record, &changed);
    Ok(record_change(tx, Role::Client, record))
}

async fn find_client(tx: &mut Tx<'_>, id: &str) -> Result<Record, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let (account, not_found) = (tx.account(), || Error::NotFound(Role::Client.name()));
    let id = id::parse(id).ok_or_else(not_found)?;
    store::find_locked(tx.db(), account, Role::Client, id).await?.ok_or_else(not_found)
}

fn check_withdrawn(withdrawal: &Withdrawal) -> Result<(), Error> {
    if withdrawal.referrers.is_empty() {
        return Ok(withdrawal.check()?);
    }
    Err(Error::InUse(withdrawal.referrers.clone()))
}

/// Records a created or changed record in the log, and returns it as the answer shows it.
fn record_change(tx: &mut Plan<'_>, role: Role, record: Record) -> Relation {
    let id = record.id;
    let relation = Relation::from(record);
    tx.changed(role.name(), id, &relation);
    relation
}

/// Finds a record that is about to change, with a lock if the transaction is open.
async fn find(tx: &mut LazyTx<'_>, role: Role, id: &str) -> Result<Option<Record>, Error> {
    let account = tx.account();
    let Some(id) = id::parse(id) else { return Ok(None) };
    match tx.opened() {
        Some(connection) => store::find_locked(connection, account, role, id).await,
        None => tx.read(async |connection| store::find(connection, account, role, id).await).await,
    }
}

/// Fails if another record has the external id of these values. Without an open transaction the unique index tells that
/// there is one, and the operation runs again, with a transaction; a failed one could not name the holder.
async fn refuse_taken(tx: &mut LazyTx<'_>, role: Role, values: &ClientInput) -> Result<(), Error> {
    let (account, external_id) = (tx.account(), &values.external_id);
    let Some(connection) = tx.opened().filter(|_| !external_id.is_empty()) else { return Ok(()) };
    match store::find_by_external_id(connection, account, role, external_id).await? {
        Some(holder) => Err(Error::ExternalIdTaken { holder: holder.id }),
        None => Ok(()),
    }
}

/// Shows the records of a list with these ids.
pub(crate) async fn show(
    tx: &mut Tx<'_>,
    role: Role,
    ids: &[String],
    shown: &mut Shown,
) -> Result<(), Error> {
    let account = tx.account();
    for record in store::list_by_ids(tx.db(), account, role, &uuids(ids)).await? {
        shown.add(record.id, &Relation::from(record));
    }
    Ok(())
}
