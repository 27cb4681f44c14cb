//! The four fields that stay editable.

use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use chrono::Datelike;
use proto::api::Fault;
use proto::billing::{Document, DocumentPatch};
use proto::{At, Faults};
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use super::create::check_dates;
use super::family::Family;
use super::{Known, answer, at_midnight, audit, log};
use crate::document::rules::search;
use crate::document::rules::standing::{CREDITED, PAID};
use crate::document::{Kind, Record, events, store};
use crate::{Error, online};

const FIELDS: [&str; 4] = ["title", "invoice_date", "due_date", "payment_status"];

pub async fn patch(
    tx: &mut Tx<'_>,
    known: &Known,
    id: &str,
    given: &DocumentPatch,
    mask: Option<&prost_types::FieldMask>,
) -> Result<Document, Error> {
    let kind = known.kind;
    let at = At::ROOT.name("document");
    let named = UpdateMask::from(mask);
    named.check(|name| FIELDS.contains(&name), kind.name(), &mut tx.faults);
    chassis_base::id::ignore_malformed(&mut tx.faults);
    let Some(mut family) = Family::lock(tx, kind, id).await? else {
        // The faults of the body come before an unknown id.
        tx.valid()?;
        return Err(Error::NotFound(kind.name()));
    };
    let mut record = family.target().clone();
    let (changes, printed) = apply(&mut record, given, named);
    if changes.contains_key("invoice_date") || changes.contains_key("due_date") {
        check_dates(record.invoice_date, record.due_date, &at, &mut tx.faults);
    }
    check_year(family.target(), &record, &at, &mut tx.faults);
    tx.valid()?;
    let from = family.target().payment_status.clone();
    if !changes.is_empty() {
        let (account, now) = (tx.account(), tx.now());
        if record.payment_status != from {
            record.paid_at = paid_at(&family, &record).or((record.payment_status == PAID).then_some(now));
        }
        record.version += 1;
        record.content_version += i64::from(printed);
        record.updated_at = now;
        store::update_content(tx.db(), account, &record, &search::with_number(&record)).await?;
        log(tx, record.id, "changed", Value::Object(changes), None).await?;
        audit(tx, &record);
        events::status_changed(tx, &record, &from).await?;
        if record.kind == Kind::Invoice && record.payment_status != from {
            // A status that was set by hand leaves the amounts alone.
            let asked = ![PAID, CREDITED].contains(&record.payment_status.as_str());
            let open = if asked { record.open_amount } else { Decimal::ZERO };
            online::follow_invoice(tx, record.id, open).await?;
        }
        *family.target_mut() = record;
    }
    answer(tx, known, family.target().id).await
}

/// The number of a final document is one of the year of its date.
fn check_year(before: &Record, record: &Record, at: &At<'_>, faults: &mut Faults) {
    let year = before.invoice_date.year();
    if before.is_final && record.invoice_date.year() != year {
        let detail =
            format!("invoice_date must stay in {year}: the number {} is of that year", before.number);
        faults.add(&at.name("invoice_date"), Fault::OutOfRange, detail);
    }
}

/// When it was paid, if its new status leaves it so: as before, or as the payments say.
fn paid_at(family: &Family, record: &Record) -> Option<chrono::DateTime<chrono::Utc>> {
    let standing = family.standing().filter(|_| record.kind == Kind::Invoice);
    let before = record.paid_at.filter(|_| record.payment_status == PAID);
    before.or_else(|| standing?.paid_on.map(at_midnight))
}

/// Puts the named values into the record; returns what changed, and whether any of it is printed.
fn apply(record: &mut Record, given: &DocumentPatch, named: UpdateMask<'_>) -> (Map<String, Value>, bool) {
    let mut changes = Map::new();
    let mut change = |name: &str, from: Value, to: Value| {
        if from != to {
            changes.insert(name.to_owned(), json!({"from": from, "to": to}));
        }
    };
    if named.has("title") {
        change("title", json!(record.title), json!(given.title));
        record.title.clone_from(&given.title);
    }
    if let Some(date) = given.invoice_date.parse().ok().filter(|_| named.has("invoice_date")) {
        change("invoice_date", json!(record.invoice_date), json!(date));
        record.invoice_date = date;
        record.invoice_date_given = true;
    }
    if let Some(date) = given.due_date.parse().ok().filter(|_| named.has("due_date")) {
        change("due_date", json!(record.due_date), json!(date));
        record.due_date = date;
        record.due_date_given = true;
    }
    let printed = !changes.is_empty();
    if named.has("payment_status") && record.payment_status != given.payment_status {
        let (from, to) = (json!(record.payment_status), json!(given.payment_status));
        changes.insert("payment_status".to_owned(), json!({"from": from, "to": to}));
        record.payment_status.clone_from(&given.payment_status);
    }
    (changes, printed)
}
