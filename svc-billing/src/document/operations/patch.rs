//! Changing the four fields that stay editable.

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
use super::{OperationContext, at_midnight, record_history};
use crate::document::rules::search;
use crate::document::rules::status::Status;
use crate::document::{Kind, Record, events, store};
use crate::error::Error;
use crate::online_payment::operations::cancel_superseded;

const FIELDS: [&str; 4] = ["title", "invoice_date", "due_date", "payment_status"];

pub(crate) async fn patch(
    tx: &mut Tx<'_>,
    context: &OperationContext,
    id: &str,
    given: &DocumentPatch,
    mask: Option<&prost_types::FieldMask>,
) -> Result<Document, Error> {
    let kind = context.kind;
    let at = At::ROOT.name("document");
    let mask = UpdateMask::from(mask);
    mask.check(|name| FIELDS.contains(&name), kind.name(), &mut tx.faults);
    chassis_base::id::ignore_malformed(&mut tx.faults);
    let Some(mut family) = Family::lock(tx, &context.links, kind, id).await? else {
        // Faults of the body are reported before an id that does not exist.
        tx.valid()?;
        return Err(Error::NotFound(kind.name()));
    };
    let mut record = family.target().clone();
    let changes = apply(&mut record, given, mask);
    if changes.has("invoice_date") || changes.has("due_date") {
        check_dates(record.invoice_date, record.due_date, &at, &mut tx.faults);
    }
    check_year(family.target(), &record, &at, &mut tx.faults);
    tx.valid()?;
    let from = family.target().status.clone();
    if !changes.fields.is_empty() {
        let (account, now) = (tx.account(), tx.now());
        if record.status != from {
            record.paid_at = paid_at(&family, &record).or((record.status == Status::Paid).then_some(now));
        }
        record.content_version += i64::from(changes.is_printed);
        *family.target_mut() = record;
        let record = family.raise(family.target, now);
        store::update_content(tx.db(), account, record, &search::with_number(record)).await?;
        record_history(tx, record.id, "changed", Value::Object(changes.fields), None).await?;
        events::status_changed(tx, record, &from).await?;
        if record.kind == Kind::Invoice && record.status != from {
            // A status that a caller set leaves the amounts alone, but nothing is asked for what is called settled.
            let is_settled = matches!(record.status, Status::Paid | Status::Credited);
            let open = if is_settled { Decimal::ZERO } else { record.open_amount };
            cancel_superseded(tx, record.id, open).await?;
        }
    }
    family.log_target(tx).await
}

/// The number of a final document contains the year of its date, so the date must stay in that year.
fn check_year(before: &Record, record: &Record, at: &At<'_>, faults: &mut Faults) {
    let year = before.invoice_date.year();
    if before.is_final && record.invoice_date.year() != year {
        let detail =
            format!("invoice_date must stay in {year}: the number {} is of that year", before.number);
        faults.add(&at.name("invoice_date"), Fault::OutOfRange, detail);
    }
}

/// When the document was paid, if its new status leaves it paid: as before, or as the payments tell.
fn paid_at(family: &Family, record: &Record) -> Option<chrono::DateTime<chrono::Utc>> {
    let settlement = family.settlement().filter(|_| record.kind == Kind::Invoice);
    let before = record.paid_at.filter(|_| record.status == Status::Paid);
    before.or_else(|| settlement?.paid_on.map(at_midnight))
}

/// What a patch changed.
#[derive(Default)]
struct Changes {
    /// The old and new value of each field that changed.
    fields: Map<String, Value>,
    /// Whether any of them is printed on the document.
    is_printed: bool,
}

impl Changes {
    fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    fn add(&mut self, name: &str, from: Value, to: Value) {
        if from != to {
            let change = Map::from_iter([("from".to_owned(), from), ("to".to_owned(), to)]);
            self.fields.insert(name.to_owned(), Value::Object(change));
        }
    }
}

/// Copies the values that the mask names into the record.
fn apply(record: &mut Record, given: &DocumentPatch, mask: UpdateMask<'_>) -> Changes {
    let mut changes = Changes::default();
    if mask.has("title") {
        changes.add("title", json!(record.title), json!(given.title));
        record.title.clone_from(&given.title);
    }
    if let Some(date) = given.invoice_date.parse().ok().filter(|_| mask.has("invoice_date")) {
        changes.add("invoice_date", json!(record.invoice_date), json!(date));
        record.invoice_date = date;
        record.invoice_date_given = true;
    }
    if let Some(date) = given.due_date.parse().ok().filter(|_| mask.has("due_date")) {
        changes.add("due_date", json!(record.due_date), json!(date));
        record.due_date = date;
        record.due_date_given = true;
    }
    // The status is the only editable field that is not printed.
    changes.is_printed = !changes.fields.is_empty();
    if mask.has("payment_status") {
        changes.add("payment_status", json!(record.status.as_str()), json!(given.payment_status));
        record.status = Status::from_text(&given.payment_status);
    }
    changes
}
