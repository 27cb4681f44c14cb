//! The events about clients. There are no events about suppliers. Services that keep something about a client hear of
//! `client.anonymized`, which is no public event.

use chassis_data::{Event, Plan};
use chrono::SecondsFormat;
use serde_json::{Value, json};

use super::{Record, Role};
use crate::relation_type;

pub(super) fn created(tx: &mut Plan<'_>, role: Role, record: &Record) {
    emit(tx, role, "customer.created", record, None);
}

pub(super) fn updated(tx: &mut Plan<'_>, role: Role, record: &Record, changed: &[&'static str]) {
    emit(tx, role, "customer.updated", record, Some(changed));
}

pub(super) fn anonymized(tx: &mut Plan<'_>, record: &Record, changed: &[&'static str]) {
    updated(tx, Role::Client, record, changed);
    tx.emit(&Event {
        kind: "client.anonymized",
        entity_type: "client",
        entity_id: record.id,
        version: record.version,
        data: data(record).to_string(),
    });
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
    let mut data = data(record);
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

fn data(record: &Record) -> Value {
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
    if let (Value::Object(data), Some(at)) = (&mut data, record.anonymized_at) {
        data.insert("anonymized_at".to_owned(), json!(at.to_rfc3339_opts(SecondsFormat::Millis, true)));
    }
    data
}
