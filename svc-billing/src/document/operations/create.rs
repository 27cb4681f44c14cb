//! A new document.

use chassis_data::{LazyTx, Plan, Tx};
use chassis_rpc::Link;
use chrono::{Days, NaiveDate};
use proto::api::Fault;
use proto::billing::{Document, DocumentInput, GenerationMode};
use proto::{At, Faults};
use render::PrintedDocument;
use render::printed::{Category, Look};
use rust_decimal::Decimal;
use sqlx::PgConnection;

use super::family::{Family, apply};
use super::number::{refuse_taken, take_number};
use super::pdf::StoredPdf;
use crate::clients::{self, Client, ClientLookup};
use crate::document::issued::{Issued, PrintedAhead};
use crate::document::pdf_renderer::PdfRenderer;
use crate::document::rules::amounts::{Amounts, Content, Row};
use crate::document::rules::printed::{einvoice_missing, printed_document};
use crate::document::rules::settlement::{self, Claim};
use crate::document::rules::status::Status;
use crate::document::rules::{input, number, printed_state, search};
use crate::document::store::{self, Defaults, Draft, Numbering};
use crate::document::{BilledPeriod, Full, Kind, Links, Parties, Record, Seller, StoredRow, events, message};
use crate::error::Error;
use crate::money::two_places;
use crate::settings::{ForDocuments, Settings};

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
}

/// Makes the PDF of a new final document before its commit.
#[derive(Clone)]
pub(crate) struct Ahead {
    pub renderer: PdfRenderer,
    pub printed: PrintedAhead,
}

/// Creates a document and returns it as it is shown. It needs no transaction, unless the document is paid already: its last
/// statement stores everything.
pub(crate) async fn create(
    tx: &mut LazyTx<'_>,
    new: &New,
    ahead: &Ahead,
    given: &DocumentInput,
) -> Result<Document, Error> {
    let account = tx.account();
    if let Some(document) = ahead.printed.take() {
        // An earlier run has failed.
        ahead.renderer.discard(account, document).await;
    }
    let is_final = is_final(given);
    let find = async |connection: &mut PgConnection| store::defaults(connection, account, is_final).await;
    let defaults = match tx.opened() {
        Some(connection) => find(connection).await?,
        None => tx.read(find).await?,
    };
    let mut made = prepare(tx, new, given, defaults)?;
    if events::is_paid(&made.record) {
        tx.open().await?;
    }
    let pdf = number_and_print(tx, ahead, &mut made).await?;
    if let Some(pdf) = &pdf {
        made.record.pdf_version = Some(pdf.version);
        super::pdf::stored(tx, pdf);
    }
    tx.write_last(store::insert(account, &made.record, &made.draft()))?;
    record_new(tx, &made.record);
    let initial = made.initial_status();
    match tx.transaction() {
        Some(tx) => events::status_changed(tx, &made.record, &initial).await?,
        None => events::emit_status(tx, &made.record, &initial),
    }
    Ok(log_new(tx, &new.links, &made.into_full()))
}

/// Gives a new document its number and, if its transaction is not open and the renderer is free, makes its PDF.
async fn number_and_print(
    tx: &mut LazyTx<'_>,
    ahead: &Ahead,
    made: &mut Prepared,
) -> Result<Option<StoredPdf>, Error> {
    let (kind, numbering) = (made.record.kind, &made.numbering);
    if let Some(tx) = tx.transaction() {
        refuse_taken(tx, &made.record, numbering).await?;
        made.record.number = take_number(tx, kind, numbering).await?;
        return Ok(None);
    }
    // Before the number, so that nobody waits for a call that waits for the renderer.
    let slot = match &made.issuer {
        Some(_) => ahead.renderer.reserve(tx.account(), made.rows.len()).await,
        None => None,
    };
    made.record.number = match (numbering.given.as_str(), made.record.is_final) {
        ("", true) => numbering.written(tx.next_in_sequence(&numbering.counter).await?),
        // Drafts are not counted without gaps: they may be deleted.
        ("", false) => numbering.written(tx.number(&numbering.counter).await?),
        (given, _) => given.to_owned(),
    };
    let Some((slot, issued)) = slot.zip(made.issued(tx)) else { return Ok(None) };
    ahead.printed.set(made.record.id);
    match Box::pin(ahead.renderer.issue_reserved(slot, tx.settings(), &issued)).await {
        Ok(pdf) => Ok(Some(pdf)),
        Err(error) => {
            // It is made later. The document must not fail for it.
            let error = chassis_base::Error::from(error);
            tracing::error!(%error, document = %made.record.id, "a PDF could not be made before its commit");
            Ok(None)
        }
    }
}

/// Creates a document of which this transaction goes on to change more. Its PDF is made after the commit.
pub(crate) async fn create_family(
    tx: &mut Tx<'_>,
    new: &New,
    given: &DocumentInput,
) -> Result<Family, Error> {
    let account = tx.account();
    let defaults = store::defaults(tx.db(), account, is_final(given)).await?;
    let mut made = prepare(tx, new, given, defaults)?;
    refuse_taken(tx, &made.record, &made.numbering).await?;
    made.record.number = take_number(tx, new.kind, &made.numbering).await?;
    store::insert_now(tx.db(), store::insert(account, &made.record, &made.draft())).await?;
    record_new(tx, &made.record);
    events::status_changed(tx, &made.record, &made.initial_status()).await?;
    let full = made.into_full();
    log_new(tx, &new.links, &full);
    Ok(Family::of_new(tx, &new.links, full.record))
}

/// Counts a new document and emits its event.
fn record_new(tx: &mut Plan<'_>, record: &Record) {
    tx.list(&record.listing());
    tx.refers_to(record.client.as_ref().map(|client| client.id));
    events::created(tx, record);
}

/// Writes a new document to the log. It is not read for that: its counter is locked until the transaction ends, so that
/// every statement delays the next create.
fn log_new(tx: &mut Plan<'_>, links: &Links, full: &Full) -> Document {
    let shown = message::document(tx.account(), links, full);
    tx.changed(full.record.kind.name(), full.record.id, &shown);
    shown
}

fn is_final(given: &DocumentInput) -> bool {
    given.generate || given.generation_mode() == GenerationMode::Final
}

/// A document that is about to be stored. Only its number is missing.
struct Prepared {
    record: Record,
    rows: Vec<Row>,
    /// Of a final document.
    issuer: Option<Issuer>,
    numbering: Numbering,
    search_text: String,
}

/// What is printed on a final document besides its content.
struct Issuer {
    parties: Parties,
    look: Look,
}

impl Prepared {
    fn draft(&self) -> Draft<'_> {
        Draft {
            rows: &self.rows,
            parties: self.issuer.as_ref().map(|issuer| &issuer.parties),
            search_text: &self.search_text,
            awaits_pdf: self.record.is_final && self.record.pdf_version.is_none(),
        }
    }

    fn initial_status(&self) -> Status {
        if self.record.is_final { Status::Open } else { Status::Draft }
    }

    /// The final document as its PDF shows it. One that a caller creates credits nothing, and nothing is collected for it yet.
    fn issued(&self, tx: &Plan<'_>) -> Option<Issued> {
        let Issuer { parties, look } = self.issuer.as_ref()?;
        let printed = printed_document(&self.record, &self.rows, parties, None, look.clone());
        let state = printed_state::as_issued(&self.record, tx.settings().timezone);
        Some(Issued { printed: PrintedDocument { state, ..printed }, full: self.full() })
    }

    fn full(&self) -> Full {
        full(self.record.clone(), self.rows.clone())
    }

    /// Exactly as it would be read.
    fn into_full(self) -> Full {
        full(self.record, self.rows)
    }
}

fn full(record: Record, rows: Vec<Row>) -> Full {
    let rows = rows.into_iter().map(|row| StoredRow { row, credited_by: None }).collect();
    Full { record, rows, credited_by: Vec::new(), history: Vec::new() }
}

/// Checks a new document and decides all of it but its number.
fn prepare(
    tx: &mut Plan<'_>,
    new: &New,
    given: &DocumentInput,
    defaults: Defaults,
) -> Result<Prepared, Error> {
    let (kind, now, today) = (new.kind, tx.now(), tx.today());
    let Defaults { settings: ForDocuments { settings, rates }, seller } = defaults;
    let at = At::ROOT.name("document");
    let Content { rows, amounts } = input::content(given, &rates, &at, &mut tx.faults);
    let is_final = is_final(given);
    check_client(&new.client, is_final, &at, &mut tx.faults);
    if is_final {
        check_final(&new.client, kind, &rows, &at, &mut tx.faults);
    }
    let dates = dates(new, given, &settings, today, &at, &mut tx.faults);
    tx.valid()?;

    let row_count = i32::try_from(rows.len()).unwrap_or_default();
    let mut record = record(tx, new, given, &settings, &amounts);
    record.is_final = is_final;
    record.finalized_at = is_final.then_some(now);
    record.row_count = row_count;
    record.invoice_date = dates.invoice_date;
    record.due_date = dates.due_date;
    set_initial_status(&mut record, &given.payment_status, today);
    let issuer = new.client.found().zip(seller).map(|(client, seller)| {
        let parties = Parties { seller: Seller::of(&seller), buyer: clients::buyer(client) };
        Issuer { parties, look: seller.look }
    });
    let parties = issuer.as_ref().map(|issuer| &issuer.parties);
    record.einvoice_missing = einvoice_missing(&record, &rows, parties, None);
    let search_text = search::text(&record.title, record.client.as_ref(), &record.external_id);
    let numbering = numbering(&record, &settings, &given.number);
    Ok(Prepared { record, rows, issuer, numbering, search_text })
}

/// A draft of what was sent, before its dates and its status are known.
fn record(tx: &Plan<'_>, new: &New, given: &DocumentInput, settings: &Settings, amounts: &Amounts) -> Record {
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
