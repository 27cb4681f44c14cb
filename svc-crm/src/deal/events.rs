//! What the rest of the product hears of deals.

use chassis::{Event, Tx};
use proto::crm::DealStatus;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Value, json};

use super::rules::Happened;
use super::{Record, priority_name, status_name};
use crate::heard::Quote;

/// Also tells of a status that is final from the start.
pub fn created(tx: &mut Tx<'_>, record: &Record) {
    emit(tx, "deal.created", record, json!({}));
    status(tx, record);
}

pub fn changed(tx: &mut Tx<'_>, record: &Record, happened: Happened) {
    if let Some(from) = happened.left {
        emit(tx, "deal.phase_changed", record, json!({"from": from, "to": record.values.place.phase_id}));
    }
    if happened.was.is_some() {
        status(tx, record);
    }
}

/// For those who refer to it.
pub fn deleted(tx: &mut Tx<'_>, record: &Record) {
    tx.emit(&Event {
        kind: "deal.deleted",
        entity_type: "deal",
        entity_id: record.id,
        version: record.version + 1,
        data: json!({"id": record.id}).to_string(),
    });
}

pub fn quote_accepted(tx: &mut Tx<'_>, record: &Record, quote: &Quote) {
    let Quote { id, number, total_incl_vat, .. } = quote;
    let quote = json!({"id": id, "number": number, "total_incl_vat": total_incl_vat});
    emit(tx, "deal.quote_accepted", record, json!({"quote": quote}));
}

/// Tells what came about by itself.
pub fn time_passed(tx: &mut Tx<'_>, kind: &'static str, record: &Record, waited: Value) {
    emit(tx, kind, record, waited);
}

fn status(tx: &mut Tx<'_>, record: &Record) {
    match record.values.status {
        DealStatus::Won => emit(tx, "deal.won", record, json!({})),
        DealStatus::Lost => emit(tx, "deal.lost", record, json!({})),
        // No such event exists.
        DealStatus::Open | DealStatus::Unspecified => {}
    }
}

fn emit(tx: &mut Tx<'_>, kind: &'static str, record: &Record, more: Value) {
    let values = &record.values;
    let mut data = json!({
        "id": record.id,
        "title": values.title,
        // A number, so that conditions can compare it. Amounts have 14 digits at most, which a double writes exactly.
        "amount": values.amount.and_then(|amount| amount.to_f64()),
        "status": status_name(values.status),
        "priority": priority_name(values.priority),
        "pipeline_id": values.place.pipeline_id,
        "phase_id": values.place.phase_id,
        "client_id": values.client_id,
        "expected_close_date": values.expected_close_date,
        "source": Some(&values.source).filter(|source| !source.is_empty()),
    });
    if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
        data.extend(more);
    }
    tx.emit(&Event {
        kind,
        entity_type: "deal",
        entity_id: record.id,
        version: record.version,
        data: data.to_string(),
    });
}
