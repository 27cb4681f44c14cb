//! What can be done with a record of either list. The rpc files only convert messages.

use chassis::mask::Named;
use chassis::paging::Page;
use chassis::{AccountId, Db, Tx, id};
use proto::At;
use proto::api::{Fault, PageMeta};
use proto::relations::{ClientInput, Relation};
use uuid::Uuid;

use super::rules::{self, Setting};
use super::{Record, Role, events, store, type_named};
use crate::Error;

/// The records of a list, as one of its requests asks for them.
pub struct Wanted<'a> {
    pub page: Page,
    pub search: &'a str,
    pub contact_type: &'a str,
}

pub async fn list(
    db: &Db,
    account: AccountId,
    role: Role,
    wanted: Wanted<'_>,
) -> Result<(Vec<Relation>, PageMeta), Error> {
    let kind = type_named(wanted.contact_type);
    let search = wanted.search.trim();
    let mut connection = db.read().await?;
    let (records, meta) = store::list(&mut connection, account, role, kind, search, wanted.page).await?;
    connection.done();
    Ok((records.into_iter().map(Relation::from).collect(), meta))
}

pub async fn get(db: &Db, account: AccountId, role: Role, id: &str) -> Result<Relation, Error> {
    let id = id::parse(id).ok_or(Error::NotFound(role.name()))?;
    let mut connection = db.read().await?;
    let found = store::find(&mut connection, account, role, id).await?;
    connection.done();
    found.map(Relation::from).ok_or(Error::NotFound(role.name()))
}

pub async fn create(tx: &mut Tx<'_>, role: Role, given: ClientInput) -> Result<Relation, Error> {
    let settings = tx.settings();
    let at = At::ROOT.name(role.name());
    let setting = Setting { role, named: Named::All, country: &settings.country, at: &at };
    let mut values = ClientInput::default();
    rules::apply(&setting, given, &mut values, &mut tx.faults);
    rules::check_name(&setting, &values, &mut tx.faults);
    tx.valid()?;

    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    let Some(debtor_number) = store::insert(tx.db(), account, role, id, &values, now).await? else {
        return Err(Error::ExternalIdTaken { holder: find_holder(tx, role, &values).await? });
    };
    let record = Record { id, version: 1, values, debtor_number, created_at: now, updated_at: now };
    tx.count(role.list(), now, 1);
    tx.count(role.list_of(record.values.r#type()), now, 1);
    events::created(tx, role, &record);
    Ok(audited(tx, role, record))
}

/// Changes what the mask names; without a mask, everything. A change of nothing leaves no trace.
pub async fn update(
    tx: &mut Tx<'_>,
    role: Role,
    id: &str,
    given: ClientInput,
    mask: Option<&prost_types::FieldMask>,
) -> Result<Relation, Error> {
    let settings = tx.settings();
    let at = At::ROOT.name(role.name());
    let setting = Setting { role, named: Named::from(mask), country: &settings.country, at: &at };
    id::forgive(&mut tx.faults);
    rules::check_mask(&setting, &mut tx.faults);
    // Clients may send a body that changes nothing.
    if role == Role::Supplier && mask.is_some_and(|mask| mask.paths.is_empty()) {
        tx.faults.add(&at, Fault::NoField, "send at least one field of a supplier");
    }

    let Some(mut record) = find_locked(tx, role, id).await? else {
        // The faults of the body come before an unknown id.
        let mut nothing = ClientInput { country: setting.country.to_owned(), ..ClientInput::default() };
        rules::apply(&setting, given, &mut nothing, &mut tx.faults);
        tx.valid()?;
        return Err(Error::NotFound(role.name()));
    };
    let old_kind = record.values.r#type();
    let changed = rules::apply(&setting, given, &mut record.values, &mut tx.faults);
    rules::check_name(&setting, &record.values, &mut tx.faults);
    tx.valid()?;
    if changed.is_empty() {
        return Ok(record.into());
    }

    // Looked up first, because a refused update would end the transaction before the holder could be named.
    if changed.contains(&"external_id")
        && let Some(holder) = find_holder(tx, role, &record.values).await?
    {
        return Err(Error::ExternalIdTaken { holder: Some(holder) });
    }
    let (account, now) = (tx.account(), tx.now());
    store::update(tx.db(), account, role, record.id, &record.values, now).await?;
    record.version += 1;
    record.updated_at = now;
    if changed.contains(&"type") {
        tx.count(role.list_of(old_kind), record.created_at, -1);
        tx.count(role.list_of(record.values.r#type()), record.created_at, 1);
    }
    events::updated(tx, role, &record, &changed);
    Ok(audited(tx, role, record))
}

/// A record that was made or changed, as it is answered and as the audit log keeps it.
fn audited(tx: &mut Tx<'_>, role: Role, record: Record) -> Relation {
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

/// Which record has the external id of these values.
async fn find_holder(tx: &mut Tx<'_>, role: Role, values: &ClientInput) -> Result<Option<Uuid>, Error> {
    let account = tx.account();
    let holder = store::find_by_external_id(tx.db(), account, role, &values.external_id).await?;
    Ok(holder.map(|record| record.id))
}
