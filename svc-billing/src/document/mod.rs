//! Invoices, quotes and workorders: one kind of record in three lists. Which list is data (`Kind`), not code.
//!
//! Besides the files that every resource has: `message` turns records into messages of the contract, `issued` is a document
//! as its PDF shows it, `pdf_renderer` makes and keeps the PDFs, `pdf_worker` those that nobody waits for, `attachment` attaches them to mails, `mailer` writes the
//! mails, `delivery` hears what becomes of them, and `shared` is what the services of documents, of their pages and of
//! subscriptions have in common.

pub(crate) mod attachment;
pub(crate) mod delivery;
pub(crate) mod events;
pub(crate) mod issued;
mod mailer;
mod message;
pub(crate) mod operations;
pub(crate) mod pdf_renderer;
pub(crate) mod pdf_worker;
pub(crate) mod rpc;
pub(crate) mod rules;
pub(crate) mod scans;
pub(crate) mod shared;
pub(crate) mod store;

use std::sync::Arc;

use chassis_base::AccountId;
use chassis_data::Listing;
use chassis_rpc::Link;
use chrono::{DateTime, NaiveDate, Utc};
use render::printed::{Bank, Language, Party};
use rules::amounts::Row;
use rules::status::Status;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clients::Client;
use crate::identity;

/// The list that a document belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Invoice,
    Quote,
    Workorder,
}

impl Kind {
    /// How a kind is stored, and what the contract and the log call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Invoice => "invoice",
            Self::Quote => "quote",
            Self::Workorder => "workorder",
        }
    }

    /// The inverse of [`Kind::name`].
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Invoice, Self::Quote, Self::Workorder].into_iter().find(|kind| kind.name() == name)
    }
}

/// What lists filter by. A status of a caller's own is not counted: there may be any number of them.
pub(crate) const STATUS_COLUMN: &str = "payment_status";
/// Filters that no column has, with their values. Of the last two only `true` is counted.
const MODE: &str = "generation_mode";
const DRAFT: &str = "draft";
const FINAL: &str = "final";
const IS_OPEN: &str = "open";
const IS_CREDIT: &str = "is_credit";

/// A document as it is stored, without its rows.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "columns of a table, each by itself")]
pub(crate) struct Record {
    pub id: Uuid,
    pub kind: Kind,
    /// Counts the changes of what its detail shows, from 1: one for each transaction that changes something of it.
    pub version: i64,
    /// How many events time alone has caused.
    pub time_events: i64,
    /// The version of what is printed.
    pub content_version: i64,
    pub is_final: bool,
    pub number: String,
    pub number_given: bool,
    pub title: String,
    pub invoice_date: NaiveDate,
    pub due_date: NaiveDate,
    /// Whether the caller chose the dates. Dates that nobody chose move to the day on which the document becomes final.
    pub invoice_date_given: bool,
    pub due_date_given: bool,
    pub currency: String,
    pub language: Language,
    pub total_excl: Decimal,
    pub vat_rate: Decimal,
    pub vat_amount: Decimal,
    pub total_incl: Decimal,
    pub row_count: i32,
    pub client: Option<Client>,
    /// The contract's `payment_status`.
    pub status: Status,
    pub paid_at: Option<DateTime<Utc>>,
    pub paid_amount: Decimal,
    pub open_amount: Decimal,
    pub overpaid_amount: Decimal,
    /// What was paid by the time it became final, limited to its total.
    pub prepaid_amount: Decimal,
    pub sent_at: Option<DateTime<Utc>>,
    pub project_number: Option<String>,
    /// The invoice that this one credits.
    pub credits: Option<Uuid>,
    /// The period that it bills, when a subscription made it.
    pub billed_period: Option<BilledPeriod>,
    pub external_id: String,
    /// The secret in its public links.
    pub token: [u8; 16],
    pub finalized_at: Option<DateTime<Utc>>,
    pub accepted_at: Option<DateTime<Utc>>,
    /// The last day on which the page of a quote was opened.
    pub viewed_on: Option<NaiveDate>,
    pub einvoice_missing: Vec<String>,
    /// The content version of which there is a PDF.
    pub pdf_version: Option<i64>,
    pub pdf_error: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Record {
    /// The lists that show it.
    pub(crate) fn listing(&self) -> Listing {
        let list = self.kind.name();
        let mode = if self.is_final { FINAL } else { DRAFT };
        let mut listing = Listing::new(self.created_at, self.id).of(list).with(list, MODE, mode);
        if !self.status.is_custom() {
            listing = listing.with(list, STATUS_COLUMN, self.status.as_str());
        }
        for (name, is_so) in [(IS_OPEN, self.is_owed()), (IS_CREDIT, self.is_credit())] {
            if is_so {
                listing = listing.with(list, name, "true");
            }
        }
        listing
    }

    /// Whether it is an invoice of which the client still has to pay something. A status that a caller set and that means
    /// something else excludes it.
    fn is_owed(&self) -> bool {
        use Status::{Open, PartiallyCredited, PartiallyPaid};
        self.kind == Kind::Invoice
            && self.is_final
            && !self.is_credit()
            && self.open_amount > Decimal::ZERO
            && matches!(self.status, Open | PartiallyPaid | PartiallyCredited)
    }

    pub(crate) fn is_credit(&self) -> bool {
        self.credits.is_some()
    }

    /// The version in events: it also grows with events that change nothing of the document.
    pub(crate) fn event_version(&self) -> i64 {
        self.version + self.time_events
    }
}

/// A document with everything that its detail shows.
#[derive(Clone, Debug)]
pub(crate) struct Full {
    pub record: Record,
    pub rows: Vec<StoredRow>,
    /// The invoices that credit it, in the order in which they were made.
    pub credited_by: Vec<Uuid>,
    /// Newest first.
    pub history: Vec<History>,
}

impl Full {
    /// The rows without what became of them.
    pub(crate) fn plain_rows(&self) -> Vec<Row> {
        self.rows.iter().map(|stored| stored.row.clone()).collect()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct StoredRow {
    pub row: Row,
    pub credited_by: Option<Uuid>,
}

/// An entry of a document's history.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub at: DateTime<Utc>,
    pub event: String,
    pub actor: String,
    /// JSON text of an object.
    pub data: String,
    /// The delivery of the mail that the entry is about.
    pub mail: Option<MailDelivery>,
}

/// How far the delivery of a mail has come.
#[derive(Clone, Debug)]
pub(crate) struct MailDelivery {
    /// As the mail queue names it.
    pub status: String,
    /// The error of the last attempt; empty without one.
    pub error: String,
}

/// The period of a subscription that an invoice bills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BilledPeriod {
    pub subscription: Uuid,
    pub period: Period,
}

/// The period that an invoice of a subscription is for; both days included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    pub from: NaiveDate,
    pub to: NaiveDate,
}

/// The seller on a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seller {
    pub party: Party,
    pub bank: Bank,
}

impl Seller {
    /// The part of an identity that a final document keeps for ever. Its look is not part of it.
    pub(crate) fn of(identity: &identity::Seller) -> Self {
        Self { party: identity.party.clone(), bank: identity.bank.clone() }
    }
}

/// Seller and buyer, stored with a document when it becomes final.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parties {
    pub seller: Seller,
    pub buyer: Party,
}

/// Builds the public links of documents, which need no API key.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    base: Arc<str>,
}

impl Links {
    /// `base` is the public URL of the gateway.
    pub(crate) fn new(base: &str) -> Self {
        Self { base: base.trim_end_matches('/').into() }
    }

    pub(crate) fn page(&self, account: AccountId, record: &Record) -> String {
        format!("{}/documents/{}", self.base, Link { account, secret: record.token }.encode())
    }

    pub(crate) fn pdf(&self, account: AccountId, record: &Record) -> String {
        self.page(account, record) + "/pdf"
    }
}
