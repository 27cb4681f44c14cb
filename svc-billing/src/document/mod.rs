//! Invoices, quotes and workorders: one kind of record in three lists. Which list is data (`Kind`), not code.

mod answer;
pub mod attachment;
pub mod events;
mod letter;
pub mod operations;
pub mod paper;
pub mod rpc;
pub mod rules;
pub mod settlement;
pub mod store;

use chrono::{DateTime, NaiveDate, Utc};
use render::paper::{Bank, Language, Party};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use answer::Links;

use crate::identity;

/// The list that a document belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Invoice,
    Quote,
    Workorder,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Invoice => "invoice",
            Self::Quote => "quote",
            Self::Workorder => "workorder",
        }
    }

    /// The opposite of [`Kind::name`]. The database knows no other names.
    fn named(name: &str) -> Self {
        match name {
            "quote" => Self::Quote,
            "workorder" => Self::Workorder,
            _ => Self::Invoice,
        }
    }
}

/// A document as it is stored, without its rows.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "columns of a table, each by itself")]
pub struct Record {
    pub id: Uuid,
    pub kind: Kind,
    pub version: i64,
    /// The version of what is printed.
    pub content_version: i64,
    pub is_final: bool,
    pub number: String,
    pub number_given: bool,
    pub title: String,
    pub invoice_date: NaiveDate,
    pub due_date: NaiveDate,
    /// Whether the caller chose the dates; those that nobody chose follow the day on which the document becomes final.
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
    pub payment_status: String,
    pub paid_at: Option<DateTime<Utc>>,
    pub paid_amount: Decimal,
    pub open_amount: Decimal,
    pub overpaid_amount: Decimal,
    /// What was paid when it became final, within its total.
    pub prepaid_amount: Decimal,
    pub sent_at: Option<DateTime<Utc>>,
    pub project_number: Option<String>,
    /// The invoice that this one credits.
    pub credits: Option<Uuid>,
    /// The subscription that made it.
    pub origin: Option<Origin>,
    pub external_id: String,
    pub token: [u8; 16],
    pub finalized_at: Option<DateTime<Utc>>,
    pub accepted_at: Option<DateTime<Utc>>,
    /// The last day on which the page of a quote was opened.
    pub viewed_on: Option<NaiveDate>,
    pub einvoice_missing: Vec<String>,
    pub pdf_version: Option<i64>,
    pub pdf_error: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Record {
    pub fn is_credit(&self) -> bool {
        self.credits.is_some()
    }
}

/// Where the invoice of a subscription comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub subscription: Uuid,
    pub period: Period,
}

/// What an invoice of a subscription is for; both days included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub from: NaiveDate,
    pub to: NaiveDate,
}

/// The client of a document, as far as the document itself shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    pub id: Uuid,
    pub company_name: String,
    pub firstname: String,
    pub lastname: String,
}

/// The seller on a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seller {
    pub party: Party,
    pub bank: Bank,
}

impl Seller {
    /// What of an identity is part of a document for ever. Its look is not.
    pub fn of(identity: &identity::Seller) -> Self {
        Self { party: identity.party.clone(), bank: identity.bank.clone() }
    }
}

/// Seller and buyer, kept with a document when it becomes final.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parties {
    pub seller: Seller,
    pub buyer: Party,
}
