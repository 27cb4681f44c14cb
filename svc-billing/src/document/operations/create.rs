//! A new document.

use chassis_data::Tx;
use chassis_rpc::Link;
use chrono::{Days, NaiveDate};
use proto::api::Fault;
use proto::billing::{Document, DocumentInput, GenerationMode};
use proto::{At, Faults};
use render::paper::Category;

use super::audit_new;
use super::family::apply;
use crate::clients::{self, Named};
use crate::document::rules::amounts::{self, Row};
use crate::document::rules::standing::{self, Claim, DRAFT, OPEN, PAID};
use crate::document::rules::{input, number, search};
use crate::document::store::{self, Draft, Numbering, StoredRow};
use crate::document::{Kind, Links, Origin, Parties, Record, Seller, answer, events, paper};
use crate::settings::{self, Settings};
use crate::{Error, identity};

/// The last day that can be written with four digits.
const LAST_DAY: NaiveDate = NaiveDate::from_ymd_opt(9999, 12, 31).expect("a valid date");

/// What is known of a new document besides the request.
#[derive(Clone)]
pub struct New {
    pub kind: Kind,
    pub client: Named,
    pub links: Links,
    /// Of an invoice that a subscription makes.
    pub origin: Option<Origin>,
}

pub async fn create(tx: &mut Tx<'_>, new: &New, given: &DocumentInput) -> Result<Document, Error> {
    let (account, kind, now) = (tx.account(), new.kind, tx.now());
    let at = At::ROOT.name("document");
    let known = settings::store::for_documents(tx.db(), account).await?;
    let (rows, amounts) = input::rows(given, &known.rates, &at, &mut tx.faults);
    let is_final = given.generate || given.generation_mode() == GenerationMode::Final;
    check_client(&new.client, is_final, &at, &mut tx.faults);
    if is_final {
        check_final(&new.client, kind, &rows, &at, &mut tx.faults);
    }
    let today = tx.today();
    let (invoice_date, due_date) = dates(new, given, &known.settings, today, &at, &mut tx.faults);
    tx.valid()?;

    let mut record = Record {
        id: tx.id(),
        kind,
        version: 1,
        content_version: 1,
        is_final,
        number: String::new(),
        number_given: !given.number.is_empty(),
        title: given.title.clone(),
        invoice_date,
        due_date,
        invoice_date_given: !given.invoice_date.is_empty(),
        due_date_given: !given.due_date.is_empty(),
        currency: tx.settings().currency.clone(),
        language: known.settings.language,
        total_excl: amounts.excl,
        vat_rate: amounts.rate,
        vat_amount: amounts.vat,
        total_incl: amounts.incl,
        row_count: i32::try_from(rows.len()).unwrap_or_default(),
        client: new.client.found().map(clients::shown),
        payment_status: String::new(),
        paid_at: None,
        paid_amount: amounts::two_places(0.into()),
        open_amount: amounts::two_places(0.into()),
        overpaid_amount: amounts::two_places(0.into()),
        prepaid_amount: amounts::two_places(0.into()),
        sent_at: None,
        project_number: None,
        credits: None,
        origin: new.origin,
        external_id: given.external_id.clone(),
        token: Link::random(account).secret,
        finalized_at: is_final.then_some(now),
        accepted_at: None,
        viewed_on: None,
        einvoice_missing: Vec::new(),
        pdf_version: None,
        pdf_error: String::new(),
        created_at: now,
        updated_at: now,
    };
    begin_status(&mut record, &given.payment_status, today);
    let parties = match new.client.found().filter(|_| is_final) {
        Some(client) => {
            let seller = identity::seller(tx.db(), account).await?;
            Some(Parties { seller: Seller::of(&seller), buyer: clients::buyer(client) })
        }
        None => None,
    };
    record.einvoice_missing = paper::einvoice_missing(&record, &rows, parties.as_ref(), None);

    let draft = Draft {
        rows: &rows,
        parties: parties.as_ref(),
        search_text: &search::text(&record.title, record.client.as_ref(), &record.external_id),
    };
    let numbering = numbering(&record, &known.settings, &given.number);
    record.number = insert(tx, &record, &draft, &numbering).await?;
    audit_new(tx, &record, &rows);
    tx.count(kind.name(), now, 1);
    events::created(tx, &record);
    let born = if is_final { OPEN } else { DRAFT };
    events::status_changed(tx, &record, born).await?;
    let rows = rows.into_iter().map(|row| StoredRow { row, credited_by: None }).collect();
    let full = store::Full { record, rows, credited_by: Vec::new(), history: Vec::new() };
    Ok(answer::document(account, &new.links, &full))
}

/// Refuses a final document that lacks what makes it one.
fn check_final(client: &Named, kind: Kind, rows: &[Row], at: &At<'_>, faults: &mut Faults) {
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

/// Whether the buyer of an invoice is to account for the VAT and has no number for that.
pub fn lacks_vat_number(kind: Kind, rows: &[Row], vat_number: &str) -> bool {
    let by_buyer = |row: &Row| matches!(row.category, Category::AE | Category::K);
    kind == Kind::Invoice && vat_number.trim().is_empty() && rows.iter().any(by_buyer)
}

/// Refuses a client who is not there.
pub fn check_client(client: &Named, is_final: bool, at: &At<'_>, faults: &mut Faults) {
    match client {
        Named::Unknown(field) => {
            let detail = format!("{field} must name a client of this account");
            faults.add(&at.name(field), Fault::UnknownReference, detail);
        }
        Named::Disagreeing => {
            let detail = "client_id and client_external_id name different clients; send one of them";
            faults.add(&at.name("client_external_id"), Fault::Conflicting, detail);
        }
        Named::Nobody if is_final => {
            let detail = "client_id or client_external_id is required: a final document needs a client";
            faults.add(&at.name("client_id"), Fault::Required, detail);
        }
        Named::Nobody | Named::Found(_) => {}
    }
}

/// Today, and the client's term after that, where the request says nothing.
fn dates(
    new: &New,
    given: &DocumentInput,
    settings: &Settings,
    today: NaiveDate,
    at: &At<'_>,
    faults: &mut Faults,
) -> (NaiveDate, NaiveDate) {
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
    (invoice_date, due_date)
}

pub fn after(date: NaiveDate, days: i32) -> NaiveDate {
    let later = date.checked_add_days(Days::new(days.unsigned_abs().into()));
    later.unwrap_or(LAST_DAY).min(LAST_DAY)
}

pub fn check_dates(invoice_date: NaiveDate, due_date: NaiveDate, at: &At<'_>, faults: &mut Faults) {
    if due_date < invoice_date {
        let detail = format!("due_date must not be before invoice_date, which is {invoice_date}");
        faults.add(&at.name("due_date"), Fault::Conflicting, detail);
    }
}

/// The status that a document starts with: what the request says, else where it stands.
fn begin_status(record: &mut Record, given: &str, today: NaiveDate) {
    if record.kind == Kind::Invoice {
        let claim = Claim {
            is_final: record.is_final,
            total: record.total_incl,
            rows: record.row_count,
            finalized_on: Some(today),
            payments: Vec::new(),
        };
        apply(record, &standing::of_family(&claim, &[]).0);
    } else {
        (if record.is_final { OPEN } else { DRAFT }).clone_into(&mut record.payment_status);
    }
    if !given.is_empty() {
        given.clone_into(&mut record.payment_status);
        record.paid_at = (given == PAID).then_some(record.created_at);
    }
}

/// Where the number of a document comes from, as it stands.
pub fn numbering(record: &Record, settings: &Settings, given: &str) -> Numbering {
    let (counter, prefix, padding) = if record.is_final {
        let prefix = number::final_prefix(settings.prefix(record.kind), record.invoice_date);
        (number::final_counter(record.kind, record.invoice_date), prefix, settings.number_padding)
    } else {
        (number::draft_counter(record.kind), number::DRAFT_PREFIX.to_owned(), 1)
    };
    Numbering { given: given.to_owned(), counter, prefix, padding }
}

/// Stores the document under the first number of the sequence that is free, or under the given one.
pub async fn insert(
    tx: &mut Tx<'_>,
    record: &Record,
    draft: &Draft<'_>,
    numbering: &Numbering,
) -> Result<String, Error> {
    let (account, kind) = (tx.account(), record.kind);
    loop {
        if let Some(number) = store::insert(tx.db(), account, record, draft, numbering).await? {
            return Ok(number);
        }
        let holder = store::find_by_external_id(tx.db(), account, kind, &record.external_id).await?;
        if holder.is_some() {
            return Err(Error::ExternalIdTaken { holder });
        }
        if let Some(origin) = record.origin
            && store::is_billed(tx.db(), account, origin).await?
        {
            let cause = format!("{} of {} has its invoice", origin.period.from, origin.subscription);
            return Err(chassis_base::Error::Internal(cause).into());
        }
        if !numbering.given.is_empty() {
            let holder = store::find_by_number(tx.db(), account, kind, &numbering.given).await?;
            return Err(Error::NumberTaken { holder });
        }
    }
}
