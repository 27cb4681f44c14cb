//! The events that deals emit.

use chassis_data::{Event, Plan};
use proto::crm::DealStatus;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Value, json};

use super::rules::Changes;
use super::{AcceptedQuote, Record, priority_name, status_name};

/// A new deal. A deal that is won or lost from the start emits that event too.
pub(super) fn created(plan: &mut Plan<'_>, record: &Record) {
    emit(plan, "deal.created", record, json!({}));
    status(plan, record);
}

pub(super) fn changed(plan: &mut Plan<'_>, record: &Record, changes: Changes) {
    if let Some(from) = changes.previous_phase {
        emit(plan, "deal.phase_changed", record, json!({"from": from, "to": record.values.phase.phase_id}));
    }
    if changes.previous_status.is_some() {
        status(plan, record);
    }
}

/// Lets other services clear their references to the deal. Its version follows that of the last event.
pub(super) fn deleted(plan: &mut Plan<'_>, record: &Record) {
    plan.emit(&Event {
        kind: "deal.deleted",
        entity_type: "deal",
        entity_id: record.id,
        version: record.event_version() + 1,
        data: json!({"id": record.id}).to_string(),
    });
}

pub(super) fn quote_accepted(plan: &mut Plan<'_>, record: &Record, quote: &AcceptedQuote) {
    let AcceptedQuote { id, number, total_incl_vat, .. } = quote;
    let quote = json!({"id": id, "number": number, "total_incl_vat": total_incl_vat});
    emit(plan, "deal.quote_accepted", record, json!({"quote": quote}));
}

/// An event of a scan: nothing changed but the time. `threshold` is how long it took.
pub(super) fn time_passed(plan: &mut Plan<'_>, kind: &'static str, record: &Record, threshold: Value) {
    emit(plan, kind, record, threshold);
}

fn status(plan: &mut Plan<'_>, record: &Record) {
    match record.values.status {
        DealStatus::Won => emit(plan, "deal.won", record, json!({})),
        DealStatus::Lost => emit(plan, "deal.lost", record, json!({})),
        // There is no event for a deal that is opened again.
        DealStatus::Open | DealStatus::Unspecified => {}
    }
}

fn emit(plan: &mut Plan<'_>, kind: &'static str, record: &Record, more: Value) {
    let values = &record.values;
    let mut data = json!({
        "id": record.id,
        "title": values.title,
        // A number, so that conditions of flows can compare it. Amounts have at most 14 digits, and a double holds
        // those exactly.
        "amount": values.amount.and_then(|amount| amount.to_f64()),
        "status": status_name(values.status),
        "priority": priority_name(values.priority),
        "pipeline_id": values.phase.pipeline_id,
        "phase_id": values.phase.phase_id,
        "client_id": values.client_id,
        "expected_close_date": values.expected_close_date,
        "source": Some(&values.source).filter(|source| !source.is_empty()),
    });
    if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
        data.extend(more);
    }
    plan.emit(&Event {
        kind,
        entity_type: "deal",
        entity_id: record.id,
        version: record.event_version(),
        data: data.to_string(),
    });
}
