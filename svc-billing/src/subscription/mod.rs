//! Subscriptions: recurring invoices. Owns when there is an invoice and for what; how it is created belongs to
//! `document`.

pub(crate) mod events;
pub(crate) mod operations;
pub(crate) mod rpc;
mod rules;
pub(crate) mod scans;
mod store;
mod worker;

use chassis_base::Timezone;
use chassis_base::time::timestamp;
use chassis_data::Listing;
use chrono::{DateTime, NaiveDate, Utc};
use proto::billing::{
    DeactivatedSubscription, ScheduleType, Subscription, SubscriptionItem, SubscriptionLine,
    SubscriptionMeta, SubscriptionSchedule, SubscriptionStatus,
};
use rust_decimal::Decimal;
use uuid::Uuid;

pub(crate) use store::{follow_client, list_by_ids};
pub(crate) use worker::worker;

use crate::document::rules::amounts::{Amounts, Row};
use crate::money::two_places;
use rules::calendar::Term;
use rules::plan::{Plan, Status};
use rules::terms;

/// The name of the counter of all subscriptions, and of the one of their numbers.
const LIST: &str = "subscription";
/// What lists filter by.
const STATUS_COLUMN: &str = "status";
const TERM_COLUMN: &str = "term";

/// A subscription as it is stored, without its lines.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub id: Uuid,
    pub number: String,
    pub title: String,
    pub client: Option<Uuid>,
    /// For searches; empty without a client.
    pub client_names: String,
    pub plan: Plan,
    /// The status and the term that are stored.
    pub stored_status: Status,
    pub stored_term: Term,
    /// The number of failed attempts to create the invoice that is due, and the last reason.
    pub failures: i32,
    pub last_error: String,
    pub total_excl: Decimal,
    pub vat_rate: Decimal,
    pub vat_amount: Decimal,
    pub total_incl: Decimal,
    pub line_count: i32,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// Counts the changes of what is shown, from 1.
    pub version: i64,
}

impl Record {
    /// The lists that show it.
    fn listing(&self) -> Listing {
        self.listing_as(self.plan.status, self.plan.term)
    }

    /// The lists that show it before this transaction stores it.
    fn stored_listing(&self) -> Listing {
        self.listing_as(self.stored_status, self.stored_term)
    }

    fn listing_as(&self, status: Status, term: Term) -> Listing {
        Listing::new(self.created_at, self.id).of(LIST).with(LIST, STATUS_COLUMN, status.name()).with(
            LIST,
            TERM_COLUMN,
            term.name(),
        )
    }

    /// To be called once when the subscription changes, before it is stored.
    fn touch(&mut self, now: DateTime<Utc>) {
        self.version += 1;
        self.updated_at = now;
    }

    /// Sets the amounts to those of these lines.
    fn set_amounts(&mut self, lines: &[Row], amounts: &Amounts) {
        self.total_excl = amounts.excl;
        self.vat_rate = amounts.rate;
        self.vat_amount = amounts.vat;
        self.total_incl = amounts.incl;
        self.line_count = i32::try_from(lines.len()).unwrap_or_default();
    }

    /// When the worker has to act: the start of the day in the account's time zone.
    fn due_at(&self, zone: Timezone) -> Option<DateTime<Utc>> {
        self.plan.due_on().map(|day| chassis_base::time::midnight(day, zone))
    }
}

/// A subscription with its lines.
#[derive(Clone, Debug)]
pub(crate) struct Full {
    pub record: Record,
    pub lines: Vec<Row>,
}

impl From<&Record> for SubscriptionItem {
    fn from(record: &Record) -> Self {
        let plan = &record.plan;
        Self {
            id: record.id.to_string(),
            number: record.number.clone(),
            title: record.title.clone(),
            client_id: record.client.map(|id| id.to_string()).unwrap_or_default(),
            status: SubscriptionStatus::from(plan.status).into(),
            term: terms::to_message(plan.term).into(),
            start_date: date(plan.start).unwrap_or_default(),
            end_date: date(plan.end),
            last_generated: date(plan.last),
            next_generate: date(plan.next),
            schedule: Some(plan.into()),
            subtotal: record.total_excl.to_string(),
            vat_rate: record.vat_rate.to_string(),
            vat_amount: record.vat_amount.to_string(),
            total_excl_vat: record.total_excl.to_string(),
            total_incl_vat: record.total_incl.to_string(),
            created_at: Some(timestamp(record.created_at)),
            meta: Some(SubscriptionMeta {
                first_generate_date: date(plan.first),
                last_error: Some(record.last_error.clone()).filter(|error| !error.is_empty()),
                updated_at: Some(timestamp(record.updated_at)),
                unbilled_days: i32::try_from(plan.unbilled_days()).unwrap_or(i32::MAX),
                version: record.version,
            }),
        }
    }
}

impl From<&Full> for Subscription {
    fn from(full: &Full) -> Self {
        let item = SubscriptionItem::from(&full.record);
        Self {
            id: item.id,
            number: item.number,
            title: item.title,
            client_id: item.client_id,
            status: item.status,
            term: item.term,
            start_date: item.start_date,
            end_date: item.end_date,
            last_generated: item.last_generated,
            next_generate: item.next_generate,
            schedule: item.schedule,
            subtotal: item.subtotal,
            vat_rate: item.vat_rate,
            vat_amount: item.vat_amount,
            total_excl_vat: item.total_excl_vat,
            total_incl_vat: item.total_incl_vat,
            created_at: item.created_at,
            lines: full.lines.iter().map(line_message).collect(),
            meta: item.meta,
        }
    }
}

impl From<&Record> for DeactivatedSubscription {
    fn from(record: &Record) -> Self {
        Self {
            id: record.id.to_string(),
            status: SubscriptionStatus::from(record.plan.status).into(),
            end_date: date(record.plan.end).unwrap_or_default(),
        }
    }
}

impl From<Status> for SubscriptionStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Draft => Self::Draft,
            Status::Active => Self::Active,
            Status::Ended => Self::Ended,
        }
    }
}

impl From<&Plan> for SubscriptionSchedule {
    fn from(plan: &Plan) -> Self {
        let kind = plan.day_of_month.map_or(ScheduleType::StartDate, |_| ScheduleType::DayOfMonth);
        let day = |day: Option<u32>| day.and_then(|day| i32::try_from(day).ok());
        Self {
            schedule_type: kind.into(),
            day_of_month: day(plan.day_of_month),
            day_of_week: day(plan.day_of_week),
        }
    }
}

/// Not `From`, because rows belong to documents and become another message there.
fn line_message(line: &Row) -> SubscriptionLine {
    SubscriptionLine {
        title: line.name.clone(),
        quantity: line.quantity.to_string(),
        unit_price: line.unit_price.to_string(),
        unit: line.unit.clone(),
        vat_code: line.vat_code.clone(),
        total_excl_vat: two_places(line.total_excl()).to_string(),
        total_incl_vat: two_places(line.total_incl()).to_string(),
    }
}

fn date(date: Option<NaiveDate>) -> Option<String> {
    date.map(|date| date.to_string())
}
