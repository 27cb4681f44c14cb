//! Subscriptions as the contract shows them.

use chassis_base::time::timestamp;
use chrono::NaiveDate;
use proto::billing::{
    ScheduleType, Subscription, SubscriptionItem, SubscriptionLine, SubscriptionMeta, SubscriptionSchedule,
    SubscriptionStatus,
};

use super::rules::plan::{Plan, Status};
use super::rules::terms;
use super::{Full, Record};
use crate::document::rules::amounts::{Row, two_places};

pub fn item(record: &Record) -> SubscriptionItem {
    let plan = &record.plan;
    SubscriptionItem {
        id: record.id.to_string(),
        number: record.number.clone(),
        title: record.title.clone(),
        client_id: record.client.map(|id| id.to_string()).unwrap_or_default(),
        status: status(plan.status).into(),
        term: terms::named(plan.term).into(),
        start_date: shown(plan.start).unwrap_or_default(),
        end_date: shown(plan.end),
        last_generated: shown(plan.last),
        next_generate: shown(plan.next),
        schedule: Some(schedule(plan)),
        subtotal: record.total_excl.to_string(),
        vat_rate: record.vat_rate.to_string(),
        vat_amount: record.vat_amount.to_string(),
        total_excl_vat: record.total_excl.to_string(),
        total_incl_vat: record.total_incl.to_string(),
        created_at: Some(timestamp(record.created_at)),
        meta: Some(meta(record)),
    }
}

pub fn subscription(full: &Full) -> Subscription {
    let SubscriptionItem {
        id,
        number,
        title,
        client_id,
        status,
        term,
        start_date,
        end_date,
        last_generated,
        next_generate,
        schedule,
        subtotal,
        vat_rate,
        vat_amount,
        total_excl_vat,
        total_incl_vat,
        created_at,
        meta,
    } = item(&full.record);
    Subscription {
        id,
        number,
        title,
        client_id,
        status,
        term,
        start_date,
        end_date,
        last_generated,
        next_generate,
        schedule,
        subtotal,
        vat_rate,
        vat_amount,
        total_excl_vat,
        total_incl_vat,
        created_at,
        lines: full.lines.iter().map(line).collect(),
        meta,
    }
}

/// Its lines, which the audit log keeps by themselves.
pub fn only_lines(record: &Record, lines: &[Row]) -> Subscription {
    Subscription {
        id: record.id.to_string(),
        lines: lines.iter().map(line).collect(),
        ..Subscription::default()
    }
}

pub fn status(status: Status) -> SubscriptionStatus {
    match status {
        Status::Draft => SubscriptionStatus::Draft,
        Status::Active => SubscriptionStatus::Active,
        Status::Ended => SubscriptionStatus::Ended,
    }
}

fn shown(date: Option<NaiveDate>) -> Option<String> {
    date.map(|date| date.to_string())
}

fn schedule(plan: &Plan) -> SubscriptionSchedule {
    let kind = plan.day_of_month.map_or(ScheduleType::StartDate, |_| ScheduleType::DayOfMonth);
    let day = |day: Option<u32>| day.and_then(|day| i32::try_from(day).ok());
    SubscriptionSchedule {
        schedule_type: kind.into(),
        day_of_month: day(plan.day_of_month),
        day_of_week: day(plan.day_of_week),
    }
}

fn meta(record: &Record) -> SubscriptionMeta {
    SubscriptionMeta {
        first_generate_date: shown(record.plan.first),
        last_error: Some(record.last_error.clone()).filter(|error| !error.is_empty()),
        updated_at: Some(timestamp(record.updated_at)),
        unbilled_days: i32::try_from(record.plan.unbilled_days()).unwrap_or(i32::MAX),
    }
}

fn line(line: &Row) -> SubscriptionLine {
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
