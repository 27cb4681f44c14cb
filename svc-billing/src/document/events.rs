//! What the rest of the product hears of documents.

use chassis_data::{Event, Tx};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Value, json};
use uuid::Uuid;

use super::rules::standing::PAID;
use super::{Kind, Record, store};
use crate::Error;

/// A workorder that is done may also say so.
const COMPLETED: &str = "completed";

pub fn created(tx: &mut Tx<'_>, record: &Record) {
    match record.kind {
        Kind::Invoice => emit(tx, "invoice.created", record, json!({})),
        Kind::Quote => emit(tx, "quote.created", record, json!({})),
        // No such event exists.
        Kind::Workorder => {}
    }
}

/// For those who refer to it.
pub fn deleted(tx: &mut Tx<'_>, record: &Record) {
    match record.kind {
        Kind::Invoice => emit(tx, "invoice.deleted", record, json!({})),
        Kind::Quote => emit(tx, "quote.deleted", record, json!({})),
        // Nobody refers to one.
        Kind::Workorder => {}
    }
}

pub fn sent(tx: &mut Tx<'_>, record: &Record, send_type: &str, recipients: &[String]) {
    emit(tx, "sales.document_sent", record, json!({"send_type": send_type, "recipients": recipients}));
}

pub fn accepted(tx: &mut Tx<'_>, record: &Record) {
    emit(tx, "quote.accepted", record, json!({}));
}

pub fn viewed(tx: &mut Tx<'_>, record: &Record) {
    emit(tx, "quote.viewed", record, json!({}));
}

pub fn credited(tx: &mut Tx<'_>, invoice: &Record, credit: Uuid) {
    emit(tx, "invoice.credited", invoice, json!({"credit_id": credit}));
}

/// Tells what a new status means. To be called whenever one changes.
pub async fn status_changed(tx: &mut Tx<'_>, record: &Record, from: &str) -> Result<(), Error> {
    let to = record.payment_status.as_str();
    if from == to {
        return Ok(());
    }
    match record.kind {
        Kind::Quote => emit(tx, "quote.phase_changed", record, json!({"from": from, "to": to})),
        Kind::Workorder if [PAID, COMPLETED].contains(&to) && ![PAID, COMPLETED].contains(&from) => {
            emit(tx, "workorder.completed", record, json!({}));
        }
        // A draft asks for nothing yet, and who gets money back does not pay.
        Kind::Invoice if to == PAID && record.is_final && record.total_incl > Decimal::ZERO => {
            emit(tx, "invoice.paid", record, json!({}));
            first_paid(tx, record).await?;
        }
        Kind::Invoice | Kind::Workorder => {}
    }
    Ok(())
}

async fn first_paid(tx: &mut Tx<'_>, record: &Record) -> Result<(), Error> {
    let Some(client) = record.client.as_ref().map(|client| client.id) else { return Ok(()) };
    let (account, now) = (tx.account(), tx.now());
    if !record.is_credit() && store::first_payment_of(tx.db(), account, client, now).await? {
        of_client(tx, "customer.first_invoice_paid", client, record, json!({})).await?;
    }
    Ok(())
}

/// Tells of a client what one of its invoices shows.
pub async fn of_client(
    tx: &mut Tx<'_>,
    kind: &'static str,
    client: Uuid,
    invoice: &Record,
    more: Value,
) -> Result<(), Error> {
    // Clients are another service's: their version here counts what billing tells of them.
    let version = tx.next_version("client", client).await?;
    let mut data = json!({"id": client, "invoice_id": invoice.id, "number": invoice.number});
    extend(&mut data, more);
    let event = Event { kind, entity_type: "client", entity_id: client, version, data: data.to_string() };
    tx.emit_from(&event, invoice.id);
    Ok(())
}

/// Tells what time alone brought about. The record's version must have been raised for it.
pub fn time_passed(tx: &mut Tx<'_>, kind: &'static str, record: &Record, more: Value) {
    emit(tx, kind, record, more);
}

fn emit(tx: &mut Tx<'_>, kind: &'static str, record: &Record, more: Value) {
    let mut data = json!({
        "id": record.id,
        "number": record.number,
        "title": record.title,
        "invoice_date": record.invoice_date,
        "due_date": record.due_date,
        "total_excl_vat": number(record.total_excl),
        "total_incl_vat": number(record.total_incl),
        "currency": record.currency,
        "payment_status": record.payment_status,
        "client_id": record.client.as_ref().map(|client| client.id),
        "external_id": Some(&record.external_id).filter(|text| !text.is_empty()),
        "is_credit": record.is_credit(),
        "is_draft": !record.is_final,
        "subscription_id": record.origin.map(|origin| origin.subscription),
    });
    extend(&mut data, more);
    tx.emit(&Event {
        kind,
        entity_type: record.kind.name(),
        entity_id: record.id,
        version: record.version,
        data: data.to_string(),
    });
}

/// Adds the entries of an object to another.
pub fn extend(data: &mut Value, more: Value) {
    if let (Value::Object(data), Value::Object(more)) = (data, more) {
        data.extend(more);
    }
}

/// An amount as a JSON number, so that conditions can compare it. Amounts have 14 digits at most; those a double writes
/// exactly as they were.
pub fn number(amount: Decimal) -> Value {
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
