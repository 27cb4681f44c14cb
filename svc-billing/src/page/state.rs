//! The state of a document that its page shows. Pure: the record and the day decide. In a file of this name because the
//! state is the page's own: it has more cases than what is printed.

use chassis_base::Timezone;
use chrono::NaiveDate;
use render::printed::PrintedState;
use rust_decimal::Decimal;

use crate::document::rules::printed_state;
use crate::document::rules::status::Status as DocumentStatus;
use crate::document::{Kind, Record};
use crate::online_payment::{OnlinePayment, Purpose, Status};

/// Amounts are positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Draft,
    /// An invoice that asks for `open`; `paid` and `credited` are already subtracted.
    ToPay {
        open: Decimal,
        paid: Decimal,
        credited: Decimal,
        /// Whether the due date has passed.
        late: bool,
        /// The state of paying it online.
        pay: Pay,
    },
    /// Nothing is asked. The day is not always known.
    Paid {
        on: Option<NaiveDate>,
    },
    /// A credited invoice.
    Credited,
    /// The receiver gets `open`; `paid` was refunded already.
    ToRefund {
        open: Decimal,
        paid: Decimal,
    },
    Refunded {
        on: Option<NaiveDate>,
    },
    /// A credit that was settled with its invoice.
    Settled,
    /// A quote that waits for an answer.
    Offered,
    Accepted {
        on: Option<NaiveDate>,
    },
    /// A quote whose last day of validity has passed.
    Expired,
    /// A quote to which its sender gave a status of their own.
    Closed,
    /// A document that asks nothing of its reader, such as a work order.
    Informative,
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

/// The result of the last attempt to pay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Last {
    /// There was none, or it can be continued.
    #[default]
    Nothing,
    /// It was made, and is being processed.
    Processing,
    /// It is open for another amount and could not be canceled yet.
    Stuck,
    Failed,
}

impl Last {
    pub(crate) fn of(payment: &OnlinePayment) -> Self {
        match payment.status {
            Status::Open if payment.purpose == Purpose::Checkout && payment.closing => Self::Stuck,
            Status::Requested | Status::Open if payment.purpose == Purpose::Checkout => Self::Nothing,
            status if status.is_open() => Self::Processing,
            Status::Failed | Status::Expired => Self::Failed,
            Status::Canceled if !payment.closing => Self::Failed,
            _ => Self::Nothing,
        }
    }
}

impl State {
    /// The same state with the state of paying online.
    #[must_use]
    pub(crate) fn with(mut self, now: Pay) -> Self {
        if let Self::ToPay { pay, .. } = &mut self {
            *pay = now;
        }
        self
    }

    /// `today` and `zone` are those of the account.
    pub(crate) fn of(record: &Record, today: NaiveDate, zone: Timezone) -> Self {
        if !record.is_final {
            return Self::Draft;
        }
        let late = record.due_date < today;
        match printed_state::current(record, zone) {
            PrintedState::ToPay { open, paid, credited } => {
                Self::ToPay { open, paid, credited, late, pay: Pay::default() }
            }
            PrintedState::Paid { on } => Self::Paid { on },
            PrintedState::Credited => Self::Credited,
            PrintedState::ToRefund { open, paid } => Self::ToRefund { open, paid },
            PrintedState::Refunded { on } => Self::Refunded { on },
            PrintedState::Settled => Self::Settled,
            PrintedState::Accepted { on } => Self::Accepted { on },
            PrintedState::New if record.kind != Kind::Quote => Self::Informative,
            PrintedState::New if record.status != DocumentStatus::Open => Self::Closed,
            PrintedState::New if late => Self::Expired,
            PrintedState::New => Self::Offered,
        }
    }

    /// The part of it that the printed document shows too.
    pub(super) fn printed(&self) -> PrintedState {
        match self {
            Self::ToPay { open, paid, credited, .. } => {
                PrintedState::ToPay { open: *open, paid: *paid, credited: *credited }
            }
            Self::ToRefund { open, paid } => PrintedState::ToRefund { open: *open, paid: *paid },
            _ => PrintedState::New,
        }
    }
}
