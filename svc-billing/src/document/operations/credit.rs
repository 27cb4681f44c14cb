//! Crediting an invoice, or some of its rows, with an invoice of the opposite sign.

use std::collections::HashSet;

use chassis_data::Tx;
use chassis_rpc::Link;
use proto::At;
use proto::api::Fault;
use proto::billing::{CreditInput, Document};
use serde_json::json;

use super::create::{after, numbering};
use super::family::{Family, apply, settle};
use super::number::take_number;
use super::{OperationContext, record_history};
use crate::document::rules::amounts::{Amounts, Row, amounts, vat_groups};
use crate::document::rules::{printed, search};
use crate::document::store::{self, Draft};
use crate::document::{Record, StoredRow, events};
use crate::error::Error;
use crate::money::two_places;
use crate::settings;

pub(crate) async fn credit(
    tx: &mut Tx<'_>,
    context: &OperationContext,
    id: &str,
    given: &CreditInput,
) -> Result<Document, Error> {
    let kind = context.kind;
    chassis_base::id::ignore_malformed(&mut tx.faults);
    let Some(mut family) = Family::lock(tx, &context.links, kind, id).await? else {
        tx.valid()?;
        return Err(Error::NotFound(kind.name()));
    };
    let account = tx.account();
    let rows = store::list_rows(tx.db(), account, family.target().id).await?;
    let positions = positions(tx, given, &rows)?;
    if family.target().is_credit() {
        return Err(Error::IsCredit);
    }
    if rows.is_empty() {
        return Err(Error::Incomplete("The invoice has no row that could be credited.".to_owned()));
    }
    let free = |position: &usize| rows[*position].credited_by.is_none();
    let all = given.credit_all.unwrap_or(true);
    if positions.is_empty() || (!all && !positions.iter().all(free)) {
        return Err(Error::AlreadyCredited);
    }
    let credited: Vec<Row> = positions.iter().map(|position| negative(&rows[*position].row)).collect();
    make(tx, &mut family, &positions, &credited).await
}

/// The indexes of the rows to credit. All of them means those that are not credited yet.
fn positions(tx: &mut Tx<'_>, given: &CreditInput, rows: &[StoredRow]) -> Result<Vec<usize>, Error> {
    if given.credit_all.unwrap_or(true) {
        tx.valid()?;
        let left = rows.iter().enumerate().filter(|(_, row)| row.credited_by.is_none());
        return Ok(left.map(|(position, _)| position).collect());
    }
    let at = At::ROOT.name("credit");
    let at = at.name("row_indexes");
    if given.row_indexes.is_empty() {
        let detail = "row_indexes is required when credit_all is false: the rows to credit, counted from 0";
        tx.faults.add(&at, Fault::Required, detail);
    }
    let mut named = HashSet::new();
    let mut positions = Vec::new();
    for (position, index) in given.row_indexes.iter().enumerate() {
        match usize::try_from(*index).ok().filter(|index| *index < rows.len()) {
            None => {
                let detail =
                    format!("row_indexes must be below {}: the invoice has that many rows", rows.len());
                tx.faults.add(&at.index(position), Fault::OutOfRange, detail);
            }
            Some(index) if !named.insert(index) => {
                tx.faults.add(&at.index(position), Fault::Repeated, format!("row {index} is named twice"));
            }
            Some(index) => positions.push(index),
        }
    }
    tx.valid()?;
    Ok(positions)
}

fn negative(row: &Row) -> Row {
    Row { quantity: -row.quantity, ..row.clone() }
}

async fn make(
    tx: &mut Tx<'_>,
    family: &mut Family,
    positions: &[usize],
    rows: &[Row],
) -> Result<Document, Error> {
    let account = tx.account();
    let settings = settings::store::for_documents(tx.db(), account).await?;
    let invoice = family.target().clone();
    let parties = store::find_parties(tx.db(), account, invoice.id).await?;
    let mut record = record(tx, &invoice, rows);
    let original = Some(printed::original(&invoice));
    record.einvoice_missing = printed::einvoice_missing(&record, rows, parties.as_ref(), original);

    let before = family.settlements();
    let id = record.id;
    let index = family.add(record.clone());
    if let Some(settlement) = family.settlements().pop() {
        apply(&mut record, &settlement);
    }

    let marked: Vec<i32> = positions.iter().filter_map(|position| i32::try_from(*position).ok()).collect();
    store::credit_rows(tx.db(), account, invoice.id, &marked, id).await?;
    // The credit is inserted with its settlement below, so it counts as unchanged here; the invoice and the other credits
    // are settled now.
    let mut stored = before;
    stored.extend(family.settlements().pop());
    settle(tx, family, &stored, &[0]).await?;
    record_history(tx, invoice.id, "credited", json!({"credit_id": id}), None).await?;
    events::credited(tx, family.root(), id);

    let search_text = search::text(&record.title, record.client.as_ref(), &record.external_id);
    let draft =
        Draft { rows, parties: parties.as_ref(), search_text: &search_text, awaits_pdf: record.is_final };
    let numbering = numbering(&record, &settings.settings, "");
    record.number = take_number(tx, record.kind, &numbering).await?;
    store::insert_now(tx.db(), store::insert(account, &record, &draft)).await?;
    events::created(tx, &record);
    family.insert(tx, index, record);
    family.log(tx, index).await
}

/// The credit without its number and its settlement. Its term is that of its invoice, which was agreed with the client.
fn record(tx: &mut Tx<'_>, invoice: &Record, rows: &[Row]) -> Record {
    let (now, today) = (tx.now(), tx.today());
    let amounts = credited_amounts(invoice, rows);
    let term = invoice.due_date - invoice.invoice_date;
    Record {
        id: tx.id(),
        version: 1,
        time_events: 0,
        content_version: 1,
        number: String::new(),
        number_given: false,
        invoice_date: today,
        invoice_date_given: false,
        due_date_given: false,
        prepaid_amount: two_places(0.into()),
        due_date: after(today, i32::try_from(term.num_days()).unwrap_or_default()),
        total_excl: amounts.excl,
        vat_rate: amounts.rate,
        vat_amount: amounts.vat,
        total_incl: amounts.incl,
        row_count: i32::try_from(rows.len()).unwrap_or_default(),
        sent_at: None,
        project_number: None,
        credits: Some(invoice.id),
        billed_period: None,
        external_id: String::new(),
        token: Link::random(tx.account()).secret,
        finalized_at: invoice.is_final.then_some(now),
        accepted_at: None,
        viewed_on: None,
        pdf_version: None,
        pdf_error: String::new(),
        created_at: now,
        updated_at: now,
        ..invoice.clone()
    }
}

/// The totals of a credit. A credit of all rows has exactly the totals of the invoice; one of some rows is computed from
/// these.
fn credited_amounts(invoice: &Record, rows: &[Row]) -> Amounts {
    if i32::try_from(rows.len()) != Ok(invoice.row_count) {
        return amounts(&vat_groups(rows));
    }
    let [excl, vat, incl] =
        [invoice.total_excl, invoice.vat_amount, invoice.total_incl].map(|amount| two_places(-amount));
    Amounts { excl, vat, incl, rate: invoice.vat_rate }
}
