//! The events about clients. There are no events about suppliers.

use chassis_data::{Event, Plan};
use serde_json::{Value, json};

use super::{Record, Role};
use crate::relation_type;

pub(super) fn created(tx: &mut Plan<'_>, role: Role, record: &Record) {
    emit(tx, role, "customer.created", record, None);
}

pub(super) fn updated(tx: &mut Plan<'_>, role: Role, record: &Record, changed: &[&'static str]) {
    emit(tx, role, "customer.updated", record, Some(changed));
}

fn emit(
    tx: &mut Plan<'_>,
    role: Role,
    kind: &'static str,
    record: &Record,
    changed: Option<&[&'static str]>,
) {
    if role != Role::Client {
        return;
    }
    let values = &record.values;
    let mut data = json!({
        "id": record.id,
        "type": relation_type::name(values.r#type()),
        "company_name": values.company_name,
        "firstname": values.firstname,
        "lastname": values.lastname,
        "email": values.email,
        "external_id": Some(&values.external_id).filter(|id| !id.is_empty()),
        "debtor_number": record.debtor_number,
    });
    if let (Value::Object(data), Some(changed)) = (&mut data, changed) {
        data.insert("changed".to_owned(), json!(changed));
    }
    tx.emit(&Event {
        kind,
        entity_type: "client",
        entity_id: record.id,
        version: record.version,
        data: data.to_string(),
    });
}
