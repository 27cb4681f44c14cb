//! Making a draft final: it gets its number, and keeps seller and buyer as they are now.

use chassis_data::Tx;
use chrono::{NaiveDate, TimeDelta};
use proto::billing::Document;
use proto::relations::Relation;
use rust_decimal::Decimal;
use serde_json::json;

use super::create::{after, lacks_vat_number, numbering};
use super::family::{Family, apply, settle};
use super::number::take_number;
use super::{OperationContext, record_history};
use crate::clients::{self, Client};
use crate::document::rules::amounts::Row;
use crate::document::rules::settlement::Settlement;
use crate::document::rules::status::Status;
use crate::document::rules::{printed, search};
use crate::document::{Kind, Parties, Record, Seller, events, store};
use crate::error::Error;
use crate::{identity, settings};

/// How long the worker leaves the PDF to the call that made the document final.
pub(crate) const PDF_GRACE: TimeDelta = TimeDelta::seconds(2);

/// Makes a draft final; a final document is returned as it is.
pub(crate) async fn finalize(
    tx: &mut Tx<'_>,
    context: &OperationContext,
    id: &str,
) -> Result<Document, Error> {
    let kind = context.kind;
    chassis_base::id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let links = &context.links;
    let mut family = Family::lock(tx, links, kind, id).await?.ok_or(Error::NotFound(kind.name()))?;
    if !family.target().is_final {
        let from = status_before(family.target());
        make_final(tx, &mut family, context.client.as_ref()).await?;
        events::status_changed(tx, family.target(), &from).await?;
        // The call records its PDF in a second transaction.
        tx.expect_amendment();
    }
    family.log_target(tx).await
}

/// The status that events compare the new one with. A draft invoice counts as a draft whatever status a caller gave it:
/// one that was called paid is paid only from the time it becomes final.
pub(crate) fn status_before(record: &Record) -> Status {
    match record.kind {
        Kind::Invoice if !record.is_final => Status::Draft,
        _ => record.status.clone(),
    }
}

/// Makes the target final. Emitting the events of its new status, and the log, are left to the caller.
pub(crate) async fn make_final(
    tx: &mut Tx<'_>,
    family: &mut Family,
    client: Option<&Relation>,
) -> Result<(), Error> {
    let (account, now, today) = (tx.account(), tx.now(), tx.today());
    let Some(client) = client else {
        return Err(Error::Incomplete("The draft has no client; a final document needs one.".to_owned()));
    };
    let before = family.settlements();
    let rows = complete_rows(tx, family, client).await?;
    let settings = settings::store::for_documents(tx.db(), account).await?.settings;
    let seller = identity::seller(tx.db(), account).await?;
    let parties = Parties { seller: Seller::of(&seller), buyer: clients::buyer(client) };
    let original = family.target().is_credit().then(|| printed::original(family.root()));

    let record = family.raise(family.target, now);
    set_dates(record, today)?;
    record.is_final = true;
    record.content_version += 1;
    record.finalized_at = Some(now);
    record.client = Some(Client::from(client));
    record.einvoice_missing = printed::einvoice_missing(record, &rows, Some(&parties), original);
    set_final_status(family);

    let record = family.target().clone();
    let given = if record.number_given { record.number.clone() } else { String::new() };
    let numbering = numbering(&record, &settings, &given);
    let search_text = search::text(&record.title, record.client.as_ref(), &record.external_id);
    record_history(tx, record.id, "finalized", json!({}), None).await?;
    // The counter is locked from here to the commit.
    family.target_mut().number = take_number(tx, record.kind, &numbering).await?;
    let (record, pdf_due_at) = (family.target(), now + PDF_GRACE);
    store::finalize(tx.db(), account, record, &parties, &search_text, pdf_due_at).await?;
    settle_others(tx, family, before).await
}

/// The rows of the target, if it has all that a final document needs.
async fn complete_rows(tx: &mut Tx<'_>, family: &Family, client: &Relation) -> Result<Vec<Row>, Error> {
    let (account, record) = (tx.account(), family.target());
    if record.row_count == 0 {
        let detail = format!("The draft has no row; a final {} needs one.", record.kind.name());
        return Err(Error::Incomplete(detail));
    }
    if record.is_credit() && !family.root().is_final {
        let detail = format!(
            "It credits {}, which is still a draft; make that one final first.",
            family.root().number
        );
        return Err(Error::Incomplete(detail));
    }
    let rows = store::list_rows(tx.db(), account, record.id).await?;
    let rows: Vec<Row> = rows.into_iter().map(|stored| stored.row).collect();
    // A credit has the buyer of its invoice, which was checked when that became final.
    if !record.is_credit() && lacks_vat_number(record.kind, &rows, &client.vat_number) {
        let detail =
            "The client has no VAT number, which reverse charge and intra-community supply need.".to_owned();
        return Err(Error::Incomplete(detail));
    }
    Ok(rows)
}

/// Sets the status that follows from the payments. A status that a caller gave to the draft stays.
fn set_final_status(family: &mut Family) {
    let settlement = family.settlement().filter(|_| family.target().kind == Kind::Invoice);
    let record = family.target_mut();
    let (status, paid_at) = (record.status.clone(), record.paid_at);
    match settlement {
        Some(settlement) => apply(record, &settlement),
        None => record.status = Status::Open,
    }
    record.prepaid_amount = prepaid(record);
    if status != Status::Draft {
        (record.status, record.paid_at) = (status, paid_at);
    }
}

/// Sets the date to the day on which the document becomes final, unless a caller chose one. The length of the term stays.
fn set_dates(record: &mut Record, today: NaiveDate) -> Result<(), Error> {
    if record.invoice_date_given {
        return Ok(());
    }
    let term = record.due_date - record.invoice_date;
    record.invoice_date = today;
    if !record.due_date_given {
        record.due_date = after(today, i32::try_from(term.num_days()).unwrap_or_default());
    } else if record.due_date < today {
        let due = record.due_date;
        let detail = format!(
            "Its due_date is {due}, before the day on which it becomes final; set a later one, or an invoice_date."
        );
        return Err(Error::Incomplete(detail));
    }
    Ok(())
}

/// What was paid before the document became final, limited to its total.
fn prepaid(record: &Record) -> Decimal {
    let (paid, total) = (record.paid_amount, record.total_incl);
    if total.is_sign_negative() { paid.clamp(total, Decimal::ZERO) } else { paid.clamp(Decimal::ZERO, total) }
}

/// Settles the other records of the family: a final credit counts for its invoice from now on. The target itself is
/// stored already.
async fn settle_others(tx: &mut Tx<'_>, family: &mut Family, before: Vec<Settlement>) -> Result<(), Error> {
    let mut stored = before;
    if let (Some(of_target), Some(now)) = (stored.get_mut(family.target), family.settlement()) {
        *of_target = now;
    }
    settle(tx, family, &stored, &[]).await
}
