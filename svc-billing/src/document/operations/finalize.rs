//! From draft to final: the number, and seller and buyer as they are now.

use chassis_data::Tx;
use chrono::NaiveDate;
use proto::billing::Document;
use proto::relations::Relation;
use rust_decimal::Decimal;
use serde_json::json;

use super::create::{after, lacks_vat_number, numbering};
use super::family::{Family, apply, settle};
use super::{Known, answer, audit, log};
use crate::document::rules::amounts::Row;
use crate::document::rules::search;
use crate::document::rules::standing::{DRAFT, OPEN, Standing};
use crate::document::{Kind, Parties, Record, Seller, events, paper, store};
use crate::{Error, clients, identity, settings};

/// Makes a draft final; a final document is returned as it is.
pub async fn finalize(tx: &mut Tx<'_>, known: &Known, id: &str) -> Result<Document, Error> {
    let kind = known.kind;
    chassis_base::id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let mut family = Family::lock(tx, kind, id).await?.ok_or(Error::NotFound(kind.name()))?;
    if !family.target().is_final {
        let from = before_final(family.target());
        make_final(tx, &mut family, known.client.as_ref()).await?;
        events::status_changed(tx, family.target(), &from).await?;
    }
    answer(tx, known, family.target().id).await
}

/// The status from which a draft becomes final: an invoice that was called paid before is so only from then on.
pub fn before_final(record: &Record) -> String {
    match record.kind {
        Kind::Invoice if !record.is_final => DRAFT.to_owned(),
        _ => record.payment_status.clone(),
    }
}

/// The target becomes final; telling of its new status is left to the caller.
pub async fn make_final(
    tx: &mut Tx<'_>,
    family: &mut Family,
    client: Option<&Relation>,
) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(client) = client else {
        return Err(Error::Incomplete("The draft has no client; a final document needs one.".to_owned()));
    };
    if family.target().row_count == 0 {
        let detail = format!("The draft has no row; a final {} needs one.", family.target().kind.name());
        return Err(Error::Incomplete(detail));
    }
    if family.target().is_credit() && !family.root().is_final {
        let detail = format!(
            "It credits {}, which is still a draft; make that one final first.",
            family.root().number
        );
        return Err(Error::Incomplete(detail));
    }
    let before = family.standings();
    let known = settings::store::for_documents(tx.db(), account).await?;
    let id = family.target().id;
    let rows: Vec<Row> =
        store::list_rows(tx.db(), account, id).await?.into_iter().map(|stored| stored.row).collect();
    // A credit goes to whom its invoice went.
    if !family.target().is_credit() && lacks_vat_number(family.target().kind, &rows, &client.vat_number) {
        let detail =
            "The client has no VAT number, which reverse charge and intra-community supply need.".to_owned();
        return Err(Error::Incomplete(detail));
    }
    let today = tx.today();
    let seller = identity::seller(tx.db(), account).await?;
    let parties = Parties { seller: Seller::of(&seller), buyer: clients::buyer(client) };
    let original = family.target().is_credit().then(|| paper::original(family.root()));

    let record = family.target_mut();
    date(record, today)?;
    record.is_final = true;
    record.version += 1;
    record.content_version += 1;
    record.finalized_at = Some(now);
    record.updated_at = now;
    record.client = Some(clients::shown(client));
    record.einvoice_missing = paper::einvoice_missing(record, &rows, Some(&parties), original);
    let standing = family.standing().filter(|_| family.target().kind == Kind::Invoice);
    let record = family.target_mut();
    let (status, paid_at) = (record.payment_status.clone(), record.paid_at);
    match standing {
        Some(standing) => apply(record, &standing),
        None => OPEN.clone_into(&mut record.payment_status),
    }
    record.prepaid_amount = prepaid(record);
    if status != DRAFT {
        (record.payment_status, record.paid_at) = (status, paid_at);
    }

    let given = if record.number_given { record.number.clone() } else { String::new() };
    let numbering = numbering(record, &known.settings, &given);
    let search_text = search::text(&record.title, record.client.as_ref(), &record.external_id);
    log(tx, id, "finalized", json!({}), None).await?;
    let record = family.target_mut();
    loop {
        let taken = store::finalize(tx.db(), account, record, &parties, &search_text, &numbering).await?;
        if let Some(number) = taken {
            record.number = number;
            break;
        }
    }
    audit(tx, record);
    settle_others(tx, family, before).await
}

/// Its date is the day on which it becomes final, unless the caller has set one. Its term stays as long as it was.
fn date(record: &mut Record, today: NaiveDate) -> Result<(), Error> {
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

/// What was paid before it became final, as far as it goes into the total.
fn prepaid(record: &Record) -> Decimal {
    let (paid, total) = (record.paid_amount, record.total_incl);
    if total.is_sign_negative() { paid.clamp(total, Decimal::ZERO) } else { paid.clamp(Decimal::ZERO, total) }
}

/// A credit counts from now on: what it means for the invoice is stored too. The target itself has been.
async fn settle_others(tx: &mut Tx<'_>, family: &mut Family, before: Vec<Standing>) -> Result<(), Error> {
    let mut stored = before;
    if let (Some(place), Some(now)) = (stored.get_mut(family.target), family.standing()) {
        *place = now;
    }
    settle(tx, family, &stored, &[]).await
}
