//! Custom fields: fields that the business adds to its records. This folder owns their definitions only; the values
//! are stored with the records.

pub(crate) mod operations;
pub(crate) mod rpc;
mod rules;
mod store;

use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::relations::{CustomField, CustomFieldEntity, CustomFieldType};

/// A definition as it is stored. Entity and key identify it.
#[derive(Clone, Debug)]
struct Record {
    entity: CustomFieldEntity,
    key: String,
    label: String,
    kind: CustomFieldType,
    options: Vec<String>,
    /// Grows by one with every change.
    version: i64,
    updated_at: DateTime<Utc>,
}

impl From<Record> for CustomField {
    fn from(record: Record) -> Self {
        let Record { entity, key, label, kind, options, version, updated_at } = record;
        Self {
            entity: entity.into(),
            key,
            label,
            r#type: kind.into(),
            options,
            version,
            updated_at: Some(timestamp(updated_at)),
        }
    }
}

/// The stored text of an entity.
fn entity_name(entity: CustomFieldEntity) -> &'static str {
    match entity {
        CustomFieldEntity::Unspecified => "",
        CustomFieldEntity::Invoice => "invoice",
        CustomFieldEntity::Quote => "quote",
        CustomFieldEntity::Workorder => "workorder",
        CustomFieldEntity::Client => "client",
        CustomFieldEntity::Supplier => "supplier",
    }
}

fn entity_from_name(name: &str) -> Option<CustomFieldEntity> {
    use CustomFieldEntity::{Client, Invoice, Quote, Supplier, Workorder};
    let all = [Invoice, Quote, Workorder, Client, Supplier];
    all.into_iter().find(|entity| entity_name(*entity) == name)
}

/// The stored text of a type.
fn type_name(kind: CustomFieldType) -> &'static str {
    match kind {
        CustomFieldType::Unspecified => "",
        CustomFieldType::Text => "text",
        CustomFieldType::Checkbox => "checkbox",
        CustomFieldType::Select => "select",
    }
}

fn type_from_name(name: &str) -> Option<CustomFieldType> {
    use CustomFieldType::{Checkbox, Select, Text};
    [Text, Checkbox, Select].into_iter().find(|kind| type_name(*kind) == name)
}
