//! Custom fields: what the business added to its records. Only their definitions; the values live with the records.

pub mod rpc;
mod rules;
mod store;

use proto::relations::{CustomFieldEntity, CustomFieldType};

/// How an entity is stored.
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

fn entity_named(name: &str) -> CustomFieldEntity {
    use CustomFieldEntity::{Client, Invoice, Quote, Supplier, Unspecified, Workorder};
    let all = [Invoice, Quote, Workorder, Client, Supplier];
    all.into_iter().find(|entity| entity_name(*entity) == name).unwrap_or(Unspecified)
}

/// How a type is stored.
fn type_name(kind: CustomFieldType) -> &'static str {
    match kind {
        CustomFieldType::Unspecified => "",
        CustomFieldType::Text => "text",
        CustomFieldType::Checkbox => "checkbox",
        CustomFieldType::Select => "select",
    }
}

fn type_named(name: &str) -> CustomFieldType {
    use CustomFieldType::{Checkbox, Select, Text, Unspecified};
    [Text, Checkbox, Select].into_iter().find(|kind| type_name(*kind) == name).unwrap_or(Unspecified)
}
