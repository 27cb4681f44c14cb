//! The writes of custom fields: load, decide, store, record.

use chassis_data::Tx;
use chassis_data::log::snapshot::Shown;
use proto::At;
use proto::relations::{CustomField, CustomFieldEntity, CustomFieldInput, UpdateCustomFieldRequest};

use super::{Record, entity_name, rules, store};
use crate::error::Error;

const NOT_FOUND: Error = Error::NotFound("custom field");
/// The kind of these records in the log.
pub(crate) const AUDIT_KIND: &str = "custom_field";

pub(super) async fn create(tx: &mut Tx<'_>, given: Option<&CustomFieldInput>) -> Result<CustomField, Error> {
    let at = At::ROOT.name("field");
    // A request without a field has a fault already; its empty key needs no fault of its own.
    if let Some(given) = given {
        rules::check_key(&given.key, &at.name("key"), &mut tx.faults);
    }
    let given = given.cloned().unwrap_or_default();
    let options = rules::check_options(given.r#type(), &given.options, &at.name("options"), &mut tx.faults);
    tx.valid()?;
    let (entity, kind) = (given.entity(), given.r#type());
    let account = tx.account();
    // The key of a removed field can be used again. Its changes are counted on.
    let version = tx.first_version(AUDIT_KIND, audit_id(entity, &given.key)).await?;
    let updated_at = tx.now();
    let record = Record { entity, key: given.key, label: given.label, kind, options, version, updated_at };
    store::insert(tx.db(), account, &record).await?;
    Ok(record_change(tx, record))
}

/// Replaces label and options; the same ones change nothing. Entity, key and type never change.
pub(super) async fn update(tx: &mut Tx<'_>, input: &UpdateCustomFieldRequest) -> Result<CustomField, Error> {
    // A key with a fault in it cannot be looked up.
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    let found = store::find_locked(tx.db(), account, input.entity(), &input.key).await?;
    let found = found.ok_or(NOT_FOUND)?;
    let options = rules::check_options(found.kind, &input.options, &At::ROOT.name("options"), &mut tx.faults);
    tx.valid()?;
    if (&found.label, &found.options) == (&input.label, &options) {
        return Ok(found.into());
    }
    let version = found.version + 1;
    let record = Record { label: input.label.clone(), options, version, updated_at: now, ..found };
    store::update(tx.db(), account, &record).await?;
    Ok(record_change(tx, record))
}

pub(super) async fn delete(tx: &mut Tx<'_>, entity: CustomFieldEntity, key: &str) -> Result<(), Error> {
    tx.valid()?;
    let account = tx.account();
    if !store::delete(tx.db(), account, entity, key).await? {
        return Err(NOT_FOUND);
    }
    tx.removed(AUDIT_KIND, audit_id(entity, key));
    Ok(())
}

/// Records a created or changed field in the log, and returns it as the answer shows it.
fn record_change(tx: &mut Tx<'_>, record: Record) -> CustomField {
    let id = audit_id(record.entity, &record.key);
    let field = CustomField::from(record);
    tx.changed(AUDIT_KIND, id, &field);
    field
}

/// The id of a field in the log. The key alone is not unique: several entities can have it.
fn audit_id(entity: CustomFieldEntity, key: &str) -> String {
    format!("{}/{key}", entity_name(entity))
}

/// Shows the fields with these ids.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for record in store::list(tx.db(), account, None).await? {
        let id = audit_id(record.entity, &record.key);
        if ids.contains(&id) {
            shown.add(id, &CustomField::from(record));
        }
    }
    Ok(())
}
