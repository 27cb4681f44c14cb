//! Subscriptions: recurring invoices. Owns when there is one and for what; how an invoice is made is the business of
//! documents.

mod answer;
pub mod events;
mod generate;
pub mod operations;
pub mod rpc;
mod rules;
mod store;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use uuid::Uuid;

pub use generate::worker;
pub use store::{follow_client, list_by_ids};

use crate::document::rules::amounts::{Amounts, Row};
use rules::plan::Plan;

/// The counter of all subscriptions, and the one of their numbers.
const LIST: &str = "subscription";

/// A subscription as it is stored, without its lines.
#[derive(Clone, Debug)]
pub struct Record {
    pub id: Uuid,
    pub number: String,
    pub title: String,
    pub client: Option<Uuid>,
    /// For searches; empty without a client.
    pub client_names: String,
    pub plan: Plan,
    /// How often the invoice that is due could not be made, and why.
    pub failures: i32,
    pub last_error: String,
    pub total_excl: Decimal,
    pub vat_rate: Decimal,
    pub vat_amount: Decimal,
    pub total_incl: Decimal,
    pub line_count: i32,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Record {
    /// Takes over what these lines come to.
    fn set_amounts(&mut self, lines: &[Row], amounts: &Amounts) {
        self.total_excl = amounts.excl;
        self.vat_rate = amounts.rate;
        self.vat_amount = amounts.vat;
        self.total_incl = amounts.incl;
        self.line_count = i32::try_from(lines.len()).unwrap_or_default();
    }

    /// When there is something to be done, in the account's time zone.
    fn due_at(&self, zone: chrono_tz::Tz) -> Option<DateTime<Utc>> {
        self.plan.due_on().map(|day| chassis_base::time::midnight(day, zone))
    }
}

/// A subscription with its lines.
#[derive(Clone, Debug)]
pub struct Full {
    pub record: Record,
    pub lines: Vec<Row>,
}
