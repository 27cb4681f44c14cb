//! Where a document stands, as its receiver is told. Pure: the record and the day decide.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use chrono_tz::Tz;
use rust_decimal::Decimal;

use crate::document::rules::standing::{ACCEPTED, CREDITED, OPEN, PAID};
use crate::document::{Kind, Record};
use crate::online::{OnlinePayment, Purpose, Status};

/// Amounts are positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Draft,
    /// An invoice that asks for money; `paid` and `credited` have gone off already.
    ToPay {
        open: Decimal,
        paid: Decimal,
        credited: Decimal,
        /// The day has passed by which it was to be paid.
        late: bool,
        /// How it stands with paying it online.
        pay: Pay,
    },
    /// Nothing is asked; the day may not be known.
    Paid {
        on: Option<NaiveDate>,
    },
    /// An invoice that was taken back.
    Credited,
    /// The receiver gets money; `paid` was paid back already.
    ToRefund {
        open: Decimal,
        paid: Decimal,
    },
    Refunded {
        on: Option<NaiveDate>,
    },
    /// A credit that was taken off its invoice.
    Settled,
    /// A quote that waits for an answer.
    Offered,
    Accepted {
        on: Option<NaiveDate>,
    },
    /// A quote that was valid for too long ago a day.
    Expired,
    /// A quote whose sender gave it a status of their own.
    Closed,
    /// A work order: nothing is asked of its reader.
    Told,
}

/// Paying an invoice on its page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pay {
    pub last: Last,
    /// Whether paying leads to another site.
    pub elsewhere: bool,
    /// Whether it cannot be paid online at all.
    pub closed: bool,
}

/// What became of the last attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Last {
    /// There was none, or it can be gone on with.
    #[default]
    Nothing,
    /// It is done, and the money is under way.
    Processing,
    /// It is open for another amount, and could not be canceled yet.
    Stuck,
    Failed,
}

impl Last {
    pub(crate) fn of(payment: &OnlinePayment) -> Self {
        match payment.status {
            Status::Open if payment.purpose == Purpose::Checkout && payment.closing => Self::Stuck,
            Status::Wanted | Status::Open if payment.purpose == Purpose::Checkout => Self::Nothing,
            status if status.is_open() => Self::Processing,
            Status::Failed | Status::Expired => Self::Failed,
            Status::Canceled if !payment.closing => Self::Failed,
            _ => Self::Nothing,
        }
    }
}

impl State {
    /// The same with how it stands with paying online.
    #[must_use]
    pub(crate) fn with(mut self, now: Pay) -> Self {
        if let Self::ToPay { pay, .. } = &mut self {
            *pay = now;
        }
        self
    }

    /// `today` and `zone` are those of the account.
    pub(crate) fn of(record: &Record, today: NaiveDate, zone: Tz) -> Self {
        if !record.is_final {
            return Self::Draft;
        }
        match record.kind {
            Kind::Invoice => invoice(record, today, zone),
            Kind::Quote => quote(record, today, zone),
            Kind::Workorder => Self::Told,
        }
    }
}

fn quote(record: &Record, today: NaiveDate, zone: Tz) -> State {
    let status = record.payment_status.as_str();
    if record.accepted_at.is_some() || status == ACCEPTED {
        State::Accepted { on: record.accepted_at.map(|at| day(at, zone)) }
    } else if status != OPEN {
        State::Closed
    } else if record.due_date < today {
        State::Expired
    } else {
        State::Offered
    }
}

/// A status that was set by hand says less than the amounts, unless it says that all is paid or taken back.
fn invoice(record: &Record, today: NaiveDate, zone: Tz) -> State {
    let on = record.paid_at.map(|at| day(at, zone));
    let (open, paid) = (record.open_amount.abs(), record.paid_amount.abs());
    let to_reader = record.is_credit() || record.total_incl.is_sign_negative();
    match (record.payment_status.as_str(), to_reader) {
        (PAID, true) => State::Refunded { on },
        (PAID, false) => State::Paid { on },
        (CREDITED, true) if record.is_credit() => State::Settled,
        (CREDITED, _) => State::Credited,
        (_, true) if open.is_zero() => State::Settled,
        (_, true) => State::ToRefund { open, paid },
        (_, false) if open.is_zero() => State::Paid { on },
        (_, false) => {
            let credited = (record.total_incl - open - paid).max(Decimal::ZERO);
            State::ToPay { open, paid, credited, late: record.due_date < today, pay: Pay::default() }
        }
    }
}

/// Payments are known by their day, which is kept as midnight; other moments fall on a day of the account.
fn day(at: DateTime<Utc>, zone: Tz) -> NaiveDate {
    if at.time() == NaiveTime::MIN { at.date_naive() } else { at.with_timezone(&zone).date_naive() }
}
