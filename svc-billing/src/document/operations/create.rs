//! A new document.

use chassis_data::Tx;
use chassis_rpc::Link;
use chrono::{Days, NaiveDate};
use proto::api::Fault;
use proto::billing::{Document, DocumentInput, GenerationMode};
use proto::{At, Faults};
use render::PrintedDocument;
use render::printed::{Category, Look};
use rust_decimal::Decimal;

use super::family::{Family, apply};
use crate::clients::{self, Client, ClientLookup};
use crate::document::issued::{Issued, LastIssued};
use crate::document::rules::amounts::{Amounts, Content, Row};
use crate::document::rules::printed::{einvoice_missing, printed_document};
use crate::document::rules::settlement::{self, Claim};
use crate::document::rules::status::Status;
use crate::document::rules::{input, number, printed_state, search};
use crate::document::store::{self, Draft, Numbering};
use crate::document::{BilledPeriod, Full, Kind, Links, Parties, Record, Seller, StoredRow, events, message};
use crate::error::Error;
use crate::identity;
use crate::money::two_places;
use crate::settings::{self, Settings};

/// The last day of the years with four digits.
const LAST_DAY: NaiveDate = NaiveDate::from_ymd_opt(9999, 12, 31).expect("a valid date");

/// What a new document needs besides the request.
#[derive(Clone)]
pub(crate) struct New {
    pub kind: Kind,
    pub client: ClientLookup,
    pub links: Links,
    /// Set for an invoice that a subscription makes.
    pub billed_period: Option<BilledPeriod>,
    /// Where [`create`] leaves a final document for its PDF.
    pub issued: LastIssued,
}

/// Creates a document and returns it as it is shown.
pub(crate) async fn create(tx: &mut Tx<'_>, new: &New, given: &DocumentInput) -> Result<Document, Error> {
    let StoredNew { full, issuer } = store_new(tx, new, given).await?;
    let shown = log_new(tx, &new.links, &full);
    if let Some(Issuer { parties, look }) = issuer {
        let zone = tx.settings().timezone;
        // A document that a caller creates credits nothing, and nothing is collected for it yet.
        let printed = printed_document(&full.record, &full.plain_rows(), &parties, None, look);
        let state = printed_state::as_issued(&full.record, zone);
        // The PDF is made after the commit and recorded by a second transaction, `record_new_pdf`.
        tx.expect_amendment();
        new.issued.set(Issued { printed: PrintedDocument { state, ..printed }, full });
    }
    Ok(shown)
}

/// Creates a document of which this transaction goes on to change more.
pub(crate) async fn create_family(
    tx: &mut Tx<'_>,
    new: &New,
    given: &DocumentInput,
) -> Result<Family, Error> {
    let StoredNew { full, .. } = store_new(tx, new, given).await?;
    log_new(tx, &new.links, &full);
    Ok(Family::of_new(tx, &new.links, full.record))
}

/// Writes a new document to the log. It is not read for that: its counter is locked until the transaction ends, so that
/// every statement delays the next create.
fn log_new(tx: &mut Tx<'_>, links: &Links, full: &Full) -> Document {
    let shown = message::document(tx.account(), links, full);
    tx.changed(full.record.kind.name(), full.record.id, &shown);
    shown
}

/// A document that was stored just now.
struct StoredNew {
    /// Exactly as it would be read.
    full: Full,
    /// Of a final document.
    issuer: Option<Issuer>,
}

/// What is printed on a final document besides its content.
struct Issuer {
    parties: Parties,
    look: Look,
}

/// Stores a new document.
async fn store_new(tx: &mut Tx<'_>, new: &New, given: &DocumentInput) -> Result<StoredNew, Error> {
    let (account, kind, now, today) = (tx.account(), new.kind, tx.now(), tx.today());
    let at = At::ROOT.name("document");
    let defaults = settings::store::for_documents(tx.db(), account).await?;
    let Content { rows, amounts } = input::content(given, &defaults.rates, &at, &mut tx.faults);
    let is_final = given.generate || given.generation_mode() == GenerationMode::Final;
    check_client(&new.client, is_final, &at, &mut tx.faults);
    if is_final {
        check_final(&new.client, kind, &rows, &at, &mut tx.faults);
    }
    let dates = dates(new, given, &defaults.settings, today, &at, &mut tx.faults);
    tx.valid()?;

    let row_count = i32::try_from(rows.len()).unwrap_or_default();
    let mut record = record(tx, new, given, &defaults.settings, &amounts);
    record.is_final = is_final;
    record.finalized_at = is_final.then_some(now);
    record.row_count = row_count;
    record.invoice_date = dates.invoice_date;
    record.due_date = dates.due_date;
    set_initial_status(&mut record, &given.payment_status, today);
    let issuer = match new.client.found().filter(|_| is_final) {
        Some(client) => {
            let seller = identity::seller(tx.db(), account).await?;
            let parties = Parties { seller: Seller::of(&seller), buyer: clients::buyer(client) };
            Some(Issuer { parties, look: seller.look })
        }
        None => None,
    };
    let parties = issuer.as_ref().map(|issuer| &issuer.parties);
    record.einvoice_missing = einvoice_missing(&record, &rows, parties, None);

    let draft = Draft {
        rows: &rows,
        parties,
        search_text: &search::text(&record.title, record.client.as_ref(), &record.external_id),
    };
    let numbering = numbering(&record, &defaults.settings, &given.number);
    record.number = insert(tx, &record, &draft, &numbering).await?;
    tx.list(&record.listing());
    events::created(tx, &record);
    let initial = if is_final { Status::Open } else { Status::Draft };
    events::status_changed(tx, &record, &initial).await?;
    let rows = rows.into_iter().map(|row| StoredRow { row, credited_by: None }).collect();
    Ok(StoredNew { full: Full { record, rows, credited_by: Vec::new(), history: Vec::new() }, issuer })
}

/// A draft of what was sent, before its dates and its status are known.
fn record(
    tx: &mut Tx<'_>,
    new: &New,
    given: &DocumentInput,
    settings: &Settings,
    amounts: &Amounts,
) -> Record {
    let (now, today, zero) = (tx.now(), tx.today(), two_places(Decimal::ZERO));
    Record {
        id: tx.id(),
        kind: new.kind,
        version: 1,
        time_events: 0,
        content_version: 1,
        is_final: false,
        number: String::new(),
        number_given: !given.number.is_empty(),
        title: given.title.clone(),
        invoice_date: today,
        due_date: today,
        invoice_date_given: !given.invoice_date.is_empty(),
        due_date_given: !given.due_date.is_empty(),
        currency: tx.settings().currency.clone(),
        language: settings.language,
        total_excl: amounts.excl,
        vat_rate: amounts.rate,
        vat_amount: amounts.vat,
        total_incl: amounts.incl,
        row_count: 0,
        client: new.client.found().map(Client::from),
        status: Status::Draft,
        paid_at: None,
        paid_amount: zero,
        open_amount: zero,
        overpaid_amount: zero,
        prepaid_amount: zero,
        sent_at: None,
        project_number: None,
        credits: None,
        billed_period: new.billed_period,
        external_id: given.external_id.clone(),
        token: Link::random(tx.account()).secret,
        finalized_at: None,
        accepted_at: None,
        viewed_on: None,
        einvoice_missing: Vec::new(),
        pdf_version: None,
        pdf_error: String::new(),
        created_at: now,
        updated_at: now,
    }
}

/// Refuses a final document that lacks a row or, for VAT that the buyer accounts for, the buyer's VAT number.
fn check_final(client: &ClientLookup, kind: Kind, rows: &[Row], at: &At<'_>, faults: &mut Faults) {
    if rows.is_empty() {
        let detail = format!("rows is required: a final {} needs one", kind.name());
        faults.add(&at.name("rows"), Fault::Required, detail);
    }
    if let Some(client) = client.found()
        && lacks_vat_number(kind, rows, &client.vat_number)
    {
        let detail = "the client has no VAT number, which reverse charge and intra-community supply need";
        faults.add(&at.name("client_id"), Fault::Conflicting, detail);
    }
}

/// Whether the buyer of an invoice must account for the VAT and has no VAT number.
pub(crate) fn lacks_vat_number(kind: Kind, rows: &[Row], vat_number: &str) -> bool {
    let by_buyer = |row: &Row| matches!(row.category, Category::AE | Category::K);
    kind == Kind::Invoice && vat_number.trim().is_empty() && rows.iter().any(by_buyer)
}

/// Refuses a client that does not exist, and a final document without one.
pub(crate) fn check_client(client: &ClientLookup, is_final: bool, at: &At<'_>, faults: &mut Faults) {
    match client {
        ClientLookup::NotFound(field) => {
            let detail = format!("{field} must name a client of this account");
            faults.add(&at.name(field), Fault::UnknownReference, detail);
        }
        ClientLookup::Conflicting => {
            let detail = "client_id and client_external_id name different clients; send one of them";
            faults.add(&at.name("client_external_id"), Fault::Conflicting, detail);
        }
        ClientLookup::None if is_final => {
            let detail = "client_id or client_external_id is required: a final document needs a client";
            faults.add(&at.name("client_id"), Fault::Required, detail);
        }
        ClientLookup::None | ClientLookup::Found(_) => {}
    }
}

struct Dates {
    invoice_date: NaiveDate,
    due_date: NaiveDate,
}

/// Where the request has no dates: today, and the client's term after it.
fn dates(
    new: &New,
    given: &DocumentInput,
    settings: &Settings,
    today: NaiveDate,
    at: &At<'_>,
    faults: &mut Faults,
) -> Dates {
    let invoice_date = given.invoice_date.parse().unwrap_or(today);
    let client = new.client.found();
    let days = match new.kind {
        Kind::Quote => client.and_then(|client| client.quote_expiration_days).unwrap_or(settings.quote_days),
        Kind::Invoice | Kind::Workorder => {
            client.and_then(|client| client.payment_term).unwrap_or(settings.payment_days)
        }
    };
    let default = after(invoice_date, days);
    let due_date = given.due_date.parse().unwrap_or(default);
    check_dates(invoice_date, due_date, at, faults);
    Dates { invoice_date, due_date }
}

/// The day so many days later, limited to years of four digits.
pub(crate) fn after(date: NaiveDate, days: i32) -> NaiveDate {
    let later = date.checked_add_days(Days::new(days.unsigned_abs().into()));
    later.unwrap_or(LAST_DAY).min(LAST_DAY)
}

pub(crate) fn check_dates(invoice_date: NaiveDate, due_date: NaiveDate, at: &At<'_>, faults: &mut Faults) {
    if due_date < invoice_date {
        let detail = format!("due_date must not be before invoice_date, which is {invoice_date}");
        faults.add(&at.name("due_date"), Fault::Conflicting, detail);
    }
}

/// Sets the status that a document starts with: the one in the request, else the one that follows from its amounts.
fn set_initial_status(record: &mut Record, given: &str, today: NaiveDate) {
    if record.kind == Kind::Invoice {
        let claim = Claim {
            is_final: record.is_final,
            total: record.total_incl,
            rows: record.row_count,
            finalized_on: Some(today),
            payments: Vec::new(),
        };
        apply(record, &settlement::of_family(&claim, &[]).invoice);
    } else {
        record.status = if record.is_final { Status::Open } else { Status::Draft };
    }
    if !given.is_empty() {
        record.status = Status::from_text(given);
        record.paid_at = (record.status == Status::Paid).then_some(record.created_at);
    }
}

/// Where the number of a document comes from, depending on whether it is final.
pub(crate) fn numbering(record: &Record, settings: &Settings, given: &str) -> Numbering {
    let (counter, prefix, padding) = if record.is_final {
        let prefix = number::final_prefix(settings, record.kind, record.invoice_date);
        (number::final_counter(record.kind, record.invoice_date), prefix, settings.number_padding)
    } else {
        (number::draft_counter(record.kind), number::DRAFT_PREFIX.to_owned(), 1)
    };
    Numbering { given: given.to_owned(), counter, prefix, padding }
}

/// Stores the document under the given number, or under the first number of the sequence that is free.
pub(crate) async fn insert(
    tx: &mut Tx<'_>,
    record: &Record,
    draft: &Draft<'_>,
    numbering: &Numbering,
) -> Result<String, Error> {
    let (account, kind) = (tx.account(), record.kind);
    if numbering.given.is_empty() {
        tx.wait_for_counter(&numbering.counter).await;
    }
    // Each round takes the next number of the sequence, so the loop ends after as many rounds as callers have used numbers
    // of the sequence for documents of their own.
    loop {
        if let Some(number) = store::insert(tx.db(), account, record, draft, numbering).await? {
            return Ok(number);
        }
        let holder = store::find_by_external_id(tx.db(), account, kind, &record.external_id).await?;
        if holder.is_some() {
            return Err(Error::ExternalIdTaken { holder });
        }
        if let Some(billed) = record.billed_period
            && store::is_billed(tx.db(), account, billed).await?
        {
            let cause = format!("{} of {} has an invoice already", billed.period.from, billed.subscription);
            return Err(chassis_base::Error::Internal(cause).into());
        }
        if !numbering.given.is_empty() {
            let holder = store::find_by_number(tx.db(), account, kind, &numbering.given).await?;
            return Err(Error::NumberTaken { holder });
        }
    }
}
