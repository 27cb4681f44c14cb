//! Where a document stands, as its receiver is told: on paper and on its page. Pure: the record decides.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use chrono_tz::Tz;
use render::paper::Settlement;
use rust_decimal::Decimal;

use super::rules::standing::{ACCEPTED, CREDITED, OPEN, PAID};
use super::{Kind, Record};

/// As things are now. `zone` is the account's.
pub fn now(record: &Record, zone: Tz) -> Settlement {
    match record.kind {
        Kind::Invoice if record.is_final => invoice(record, zone),
        Kind::Quote if record.is_final && is_accepted(record) => {
            Settlement::Accepted { on: record.accepted_at.map(|at| day(at, zone)) }
        }
        Kind::Invoice | Kind::Quote | Kind::Workorder => Settlement::New,
    }
}

/// As it was when the document was issued: of what came later, nothing.
pub fn issued(record: &Record, zone: Tz) -> Settlement {
    let plain = record.kind == Kind::Invoice && record.is_final && !record.is_credit();
    let left = record.total_incl - record.prepaid_amount;
    match now(record, zone) {
        paid @ Settlement::Paid { .. } if plain && left.is_zero() => paid,
        _ if plain && record.total_incl > Decimal::ZERO => {
            Settlement::ToPay { open: left, paid: record.prepaid_amount, credited: Decimal::ZERO }
        }
        _ if plain && record.total_incl < Decimal::ZERO => {
            Settlement::ToRefund { open: left.abs(), paid: record.prepaid_amount.abs() }
        }
        _ => Settlement::New,
    }
}

/// A status that was set by hand after the acceptance leaves it accepted, unless it opens the quote again.
fn is_accepted(record: &Record) -> bool {
    record.payment_status == ACCEPTED || (record.accepted_at.is_some() && record.payment_status != OPEN)
}

/// A status that was set by hand says less than the amounts, unless it says that all is paid or taken back.
fn invoice(record: &Record, zone: Tz) -> Settlement {
    let on = record.paid_at.map(|at| day(at, zone));
    let (open, paid) = (record.open_amount.abs(), record.paid_amount.abs());
    let to_reader = record.is_credit() || record.total_incl.is_sign_negative();
    match (record.payment_status.as_str(), to_reader) {
        (PAID, true) => Settlement::Refunded { on },
        (PAID, false) => Settlement::Paid { on },
        (CREDITED, true) if record.is_credit() => Settlement::Settled,
        (CREDITED, _) => Settlement::Credited,
        (_, true) if open.is_zero() => Settlement::Settled,
        (_, true) => Settlement::ToRefund { open, paid },
        (_, false) if open.is_zero() => Settlement::Paid { on },
        (_, false) => {
            let credited = (record.total_incl - open - paid).max(Decimal::ZERO);
            Settlement::ToPay { open, paid, credited }
        }
    }
}

/// Payments are known by their day, which is kept as midnight; other moments fall on a day of the account.
pub fn day(at: DateTime<Utc>, zone: Tz) -> NaiveDate {
    if at.time() == NaiveTime::MIN { at.date_naive() } else { at.with_timezone(&zone).date_naive() }
}
