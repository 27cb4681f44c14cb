//! The writes of clients and suppliers: load, decide, store, record.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use proto::At;
use proto::api::Fault;
use proto::relations::{ClientInput, Relation};
use uuid::Uuid;

use super::rules::{self, InputContext};
use super::store::Debtor;
use super::{Record, Role, events, store};
use crate::error::Error;

pub(super) async fn create(tx: &mut Tx<'_>, role: Role, given: ClientInput) -> Result<Relation, Error> {
    let settings = tx.settings();
    let at = At::ROOT.name(role.name());
    let context = InputContext { role, mask: UpdateMask::All, default_country: &settings.country, at: &at };
    let mut values = ClientInput::default();
    rules::apply(&context, given, &mut values, &mut tx.faults);
    rules::check_name(&context, &values, &mut tx.faults);
    tx.valid()?;

    let account = tx.account();
    let id = tx.id();
    let now = tx.now();
    let debtor = match (role, tx.number_ahead()) {
        (Role::Supplier, _) => Debtor::None,
        (Role::Client, Some(number)) => Debtor::Number(number),
        (Role::Client, None) => {
            tx.wait_for_counter(store::DEBTORS).await;
            Debtor::Next
        }
    };
    let Some(debtor_number) = store::insert(tx.db(), account, role, id, &values, &debtor, now).await? else {
        return Err(Error::ExternalIdTaken { holder: find_holder(tx, role, &values).await? });
    };
    let record = Record { id, version: 1, values, debtor_number, created_at: now, updated_at: now };
    tx.count(role.list(), now, 1);
    tx.count(role.list_of(record.values.r#type()), now, 1);
    events::created(tx, role, &record);
    Ok(record_change(tx, role, record))
}

/// Changes the fields that the mask names; without a mask, all fields. An update that changes no value stores nothing
/// and emits no event.
pub(super) async fn update(
    tx: &mut Tx<'_>,
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

    let Some(mut record) = find_locked(tx, role, id).await? else {
        // Faults of the body are reported before an id that does not exist, so the body is checked against an empty
        // record.
        let mut empty = ClientInput { country: context.default_country.to_owned(), ..ClientInput::default() };
        rules::apply(&context, given, &mut empty, &mut tx.faults);
        tx.valid()?;
        return Err(Error::NotFound(role.name()));
    };
    let old_type = record.values.r#type();
    let changed = rules::apply(&context, given, &mut record.values, &mut tx.faults);
    rules::check_name(&context, &record.values, &mut tx.faults);
    tx.valid()?;
    if changed.is_empty() {
        return Ok(record.into());
    }

    // The holder is looked up before the update: once the unique index has refused the update, the transaction has
    // failed and the holder could not be named. Of two concurrent updates the index still refuses the second.
    if changed.contains(&"external_id")
        && let Some(holder) = find_holder(tx, role, &record.values).await?
    {
        return Err(Error::ExternalIdTaken { holder: Some(holder) });
    }
    let account = tx.account();
    let now = tx.now();
    store::update(tx.db(), account, role, record.id, &record.values, now).await?;
    record.version += 1;
    record.updated_at = now;
    if changed.contains(&"type") {
        // Counters are kept by the day of creation, so both changes belong to that day.
        tx.count(role.list_of(old_type), record.created_at, -1);
        tx.count(role.list_of(record.values.r#type()), record.created_at, 1);
    }
    events::updated(tx, role, &record, &changed);
    Ok(record_change(tx, role, record))
}

/// Records a created or changed record in the log, and returns it as the answer shows it.
fn record_change(tx: &mut Tx<'_>, role: Role, record: Record) -> Relation {
    let id = record.id;
    let relation = Relation::from(record);
    tx.changed(role.name(), id, &relation);
    relation
}

async fn find_locked(tx: &mut Tx<'_>, role: Role, id: &str) -> Result<Option<Record>, Error> {
    let account = tx.account();
    match id::parse(id) {
        Some(id) => store::find_locked(tx.db(), account, role, id).await,
        None => Ok(None),
    }
}

/// The id of the record that has the external id of these values.
async fn find_holder(tx: &mut Tx<'_>, role: Role, values: &ClientInput) -> Result<Option<Uuid>, Error> {
    let account = tx.account();
    let holder = store::find_by_external_id(tx.db(), account, role, &values.external_id).await?;
    Ok(holder.map(|record| record.id))
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
