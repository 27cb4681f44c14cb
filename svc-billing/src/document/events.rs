//! The events that documents emit.

use chassis_data::{Event, Plan, Tx};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Value, json};
use uuid::Uuid;

use super::rules::status::Status;
use super::{Kind, Record, store};
use crate::error::Error;

pub(crate) fn created(tx: &mut Plan<'_>, record: &Record) {
    match record.kind {
        Kind::Invoice => emit(tx, "invoice.created", record, json!({})),
        Kind::Quote => emit(tx, "quote.created", record, json!({})),
        // The contract has no such event.
        Kind::Workorder => {}
    }
}

/// Emitted for the services that refer to documents.
pub(crate) fn deleted(tx: &mut Plan<'_>, record: &Record) {
    match record.kind {
        Kind::Invoice => emit(tx, "invoice.deleted", record, json!({})),
        Kind::Quote => emit(tx, "quote.deleted", record, json!({})),
        // No service refers to workorders.
        Kind::Workorder => {}
    }
}

pub(crate) fn sent(tx: &mut Tx<'_>, record: &Record, send_type: &str, recipients: &[String]) {
    emit(tx, "sales.document_sent", record, json!({"send_type": send_type, "recipients": recipients}));
}

pub(crate) fn accepted(tx: &mut Tx<'_>, record: &Record) {
    emit(tx, "quote.accepted", record, json!({}));
}

pub(crate) fn viewed(tx: &mut Tx<'_>, record: &Record) {
    emit(tx, "quote.viewed", record, json!({}));
}

pub(crate) fn credited(tx: &mut Tx<'_>, invoice: &Record, credit: Uuid) {
    emit(tx, "invoice.credited", invoice, json!({"credit_id": credit}));
}

/// Emits the events of a change of status. To be called whenever a status changes.
pub(crate) async fn status_changed(tx: &mut Tx<'_>, record: &Record, from: &Status) -> Result<(), Error> {
    emit_status(tx, record, from);
    if *from != record.status && is_paid(record) {
        first_paid(tx, record).await?;
    }
    Ok(())
}

/// Whether a document counts as a payment of its client. A draft asks for nothing yet, and an invoice with a negative total is
/// refunded rather than paid.
pub(crate) fn is_paid(record: &Record) -> bool {
    let is_claim = record.kind == Kind::Invoice && record.is_final && record.total_incl > Decimal::ZERO;
    is_claim && record.status == Status::Paid
}

/// The same for a document that is not [paid](is_paid), which needs no transaction.
pub(crate) fn emit_status(tx: &mut Plan<'_>, record: &Record, from: &Status) {
    let to = &record.status;
    if from == to {
        return;
    }
    match record.kind {
        Kind::Quote => {
            emit(tx, "quote.phase_changed", record, json!({"from": from.as_str(), "to": to.as_str()}));
        }
        Kind::Workorder if is_done(to) && !is_done(from) => {
            emit(tx, "workorder.completed", record, json!({}));
        }
        Kind::Invoice if is_paid(record) => emit(tx, "invoice.paid", record, json!({})),
        Kind::Invoice | Kind::Workorder => {}
    }
}

fn is_done(status: &Status) -> bool {
    matches!(status, Status::Paid | Status::Completed)
}

async fn first_paid(tx: &mut Tx<'_>, record: &Record) -> Result<(), Error> {
    let Some(client) = record.client.as_ref().map(|client| client.id) else { return Ok(()) };
    let (account, now) = (tx.account(), tx.now());
    if !record.is_credit() && store::insert_paying_client(tx.db(), account, client, now).await? {
        of_client(tx, "customer.first_invoice_paid", client, record, json!({})).await?;
    }
    Ok(())
}

/// Emits an event about a client that one of its invoices is the cause of.
pub(crate) async fn of_client(
    tx: &mut Tx<'_>,
    kind: &'static str,
    client: Uuid,
    invoice: &Record,
    more: Value,
) -> Result<(), Error> {
    // Clients belong to another service. Their version here only orders the events that billing emits about them.
    let version = tx.next_version("client", client).await?;
    let mut data = json!({"id": client, "invoice_id": invoice.id, "number": invoice.number});
    extend(&mut data, more);
    let event = Event { kind, entity_type: "client", entity_id: client, version, data: data.to_string() };
    tx.emit_from(&event, invoice.id);
    Ok(())
}

/// Emits an event that time alone caused. It must have been counted with the record.
pub(crate) fn time_passed(tx: &mut Tx<'_>, kind: &'static str, record: &Record, more: Value) {
    emit(tx, kind, record, more);
}

fn emit(tx: &mut Plan<'_>, kind: &'static str, record: &Record, more: Value) {
    let mut data = json!({
        "id": record.id,
        "number": record.number,
        "title": record.title,
        "invoice_date": record.invoice_date,
        "due_date": record.due_date,
        "total_excl_vat": number(record.total_excl),
        "total_incl_vat": number(record.total_incl),
        "currency": record.currency,
        "payment_status": record.status.as_str(),
        "client_id": record.client.as_ref().map(|client| client.id),
        "external_id": Some(&record.external_id).filter(|text| !text.is_empty()),
        "is_credit": record.is_credit(),
        "is_draft": !record.is_final,
        "subscription_id": record.billed_period.map(|billed| billed.subscription),
    });
    extend(&mut data, more);
    tx.emit(&Event {
        kind,
        entity_type: record.kind.name(),
        entity_id: record.id,
        version: record.event_version(),
        data: data.to_string(),
    });
}

/// Adds the entries of an object to another.
pub(crate) fn extend(data: &mut Value, more: Value) {
    if let (Value::Object(data), Value::Object(more)) = (data, more) {
        data.extend(more);
    }
}

/// An amount as a JSON number, so that conditions can compare it. Amounts have at most 14 digits, which a double
/// represents exactly enough to be written as they were.
pub(crate) fn number(amount: Decimal) -> Value {
    json!(amount.to_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_and_the_smallest_amounts_are_written_exactly() {
        for text in ["999999999999.99", "-999999999999.98", "0.01", "0.1", "121.0"] {
            assert_eq!(number(text.parse().unwrap()).to_string(), text);
        }
    }
}
