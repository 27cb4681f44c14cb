//! The state of payment or acceptance that a document's receiver is told, in print and on its page. Pure: the record
//! decides.

use chassis_base::Timezone;
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use render::printed::PrintedState;
use rust_decimal::Decimal;

use super::status::Status;
use crate::document::{Kind, Record};

/// The state at this moment. `zone` is the account's.
pub(crate) fn current(record: &Record, zone: Timezone) -> PrintedState {
    match record.kind {
        Kind::Invoice if record.is_final => invoice(record, zone),
        Kind::Quote if record.is_final && is_accepted(record) => {
            PrintedState::Accepted { on: record.accepted_at.map(|at| day(at, zone)) }
        }
        Kind::Invoice | Kind::Quote | Kind::Workorder => PrintedState::New,
    }
}

/// The amount that its receiver is asked to pay; `None` when nothing is.
pub(crate) fn amount_to_pay(record: &Record, zone: Timezone) -> Option<Decimal> {
    match current(record, zone) {
        PrintedState::ToPay { open, .. } => Some(open),
        _ => None,
    }
}

/// The state at the time of issue, without anything that happened later.
pub(crate) fn as_issued(record: &Record, zone: Timezone) -> PrintedState {
    let is_plain_invoice = record.kind == Kind::Invoice && record.is_final && !record.is_credit();
    let left = record.total_incl - record.prepaid_amount;
    match current(record, zone) {
        paid @ PrintedState::Paid { .. } if is_plain_invoice && left.is_zero() => paid,
        _ if is_plain_invoice && record.total_incl > Decimal::ZERO => {
            PrintedState::ToPay { open: left, paid: record.prepaid_amount, credited: Decimal::ZERO }
        }
        _ if is_plain_invoice && record.total_incl < Decimal::ZERO => {
            PrintedState::ToRefund { open: left.abs(), paid: record.prepaid_amount.abs() }
        }
        _ => PrintedState::New,
    }
}

/// A status that a caller set after the acceptance leaves the quote accepted, unless it opens the quote again.
fn is_accepted(record: &Record) -> bool {
    record.status == Status::Accepted || (record.accepted_at.is_some() && record.status != Status::Open)
}

/// The amounts count more than a status that a caller set, unless that says that all is paid or credited.
fn invoice(record: &Record, zone: Timezone) -> PrintedState {
    let on = record.paid_at.map(|at| day(at, zone));
    let (open, paid) = (record.open_amount.abs(), record.paid_amount.abs());
    let receives = record.is_credit() || record.total_incl.is_sign_negative();
    match (&record.status, receives) {
        (Status::Paid, true) => PrintedState::Refunded { on },
        (Status::Paid, false) => PrintedState::Paid { on },
        (Status::Credited, true) if record.is_credit() => PrintedState::Settled,
        (Status::Credited, _) => PrintedState::Credited,
        (_, true) if open.is_zero() => PrintedState::Settled,
        (_, true) => PrintedState::ToRefund { open, paid },
        (_, false) if open.is_zero() => PrintedState::Paid { on },
        (_, false) => {
            let credited = (record.total_incl - open - paid).max(Decimal::ZERO);
            PrintedState::ToPay { open, paid, credited }
        }
    }
}

/// The account's day of a time. Payments are known by their day alone, which is stored as midnight in UTC.
pub(crate) fn day(at: DateTime<Utc>, zone: Timezone) -> NaiveDate {
    if at.time() == NaiveTime::MIN { at.date_naive() } else { at.with_timezone(&zone).date_naive() }
}
