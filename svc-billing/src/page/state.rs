//! Where a document stands, as its receiver is told. Pure: the record and the day decide.

use chrono::NaiveDate;
use chrono_tz::Tz;
use render::paper::Settlement;
use rust_decimal::Decimal;

use crate::document::rules::standing::OPEN;
use crate::document::{Kind, Record, settlement};
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
        let late = record.due_date < today;
        match settlement::now(record, zone) {
            Settlement::ToPay { open, paid, credited } => {
                Self::ToPay { open, paid, credited, late, pay: Pay::default() }
            }
            Settlement::Paid { on } => Self::Paid { on },
            Settlement::Credited => Self::Credited,
            Settlement::ToRefund { open, paid } => Self::ToRefund { open, paid },
            Settlement::Refunded { on } => Self::Refunded { on },
            Settlement::Settled => Self::Settled,
            Settlement::Accepted { on } => Self::Accepted { on },
            Settlement::New if record.kind != Kind::Quote => Self::Told,
            Settlement::New if record.payment_status != OPEN => Self::Closed,
            Settlement::New if late => Self::Expired,
            Settlement::New => Self::Offered,
        }
    }

    /// The part of it that paper tells too.
    pub(super) fn settlement(&self) -> Settlement {
        match self {
            Self::ToPay { open, paid, credited, .. } => {
                Settlement::ToPay { open: *open, paid: *paid, credited: *credited }
            }
            Self::ToRefund { open, paid } => Settlement::ToRefund { open: *open, paid: *paid },
            _ => Settlement::New,
        }
    }
}
