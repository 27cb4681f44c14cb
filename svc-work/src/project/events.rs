//! The events that projects emit.

use chassis_data::{Event, Tx};
use proto::work::ProjectStatus;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Value, json};

use super::{Record, status_name};

pub(super) fn created(tx: &mut Tx<'_>, record: &Record) {
    emit(tx, "project.created", record, json!({}));
    if record.quote.is_some() {
        emit(tx, "quote.converted_to_project", record, json!({}));
    }
    // A project can be created when its work is done already.
    if record.values.status == ProjectStatus::Completed {
        emit(tx, "project.completed", record, json!({}));
    }
}

pub(super) fn status_changed(tx: &mut Tx<'_>, record: &Record, from: ProjectStatus) {
    let to = record.values.status;
    let change = json!({"from": status_name(from), "to": status_name(to)});
    emit(tx, "project.status_changed", record, change);
    if to == ProjectStatus::Completed {
        emit(tx, "project.completed", record, json!({}));
    }
}

fn emit(tx: &mut Tx<'_>, kind: &'static str, record: &Record, more: Value) {
    let values = &record.values;
    let mut data = json!({
        "id": record.id,
        "number": record.number,
        "name": values.name,
        "status": status_name(values.status),
        "client_id": values.client,
        // A number, so that conditions of flows can compare it. Amounts have at most 14 digits, and a double holds
        // those exactly.
        "budget": values.budget.and_then(|budget| budget.to_f64()),
        "start_date": values.start,
        "end_date": values.end,
        "quote_id": record.quote,
    });
    if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
        data.extend(more);
    }
    tx.emit(&Event {
        kind,
        entity_type: "project",
        entity_id: record.id,
        version: record.version,
        data: data.to_string(),
    });
}
