//! What is written about online payments, each function inside a write transaction. No function calls the provider;
//! the commands it queues are executed after the commit.

mod checkout;
mod collect;
mod record;
mod request;

pub(crate) use checkout::{StartCheckout, start_checkout};
pub(crate) use collect::{collect, collect_family};
pub(crate) use record::{CommandOutcome, Outcome, record};
pub(crate) use request::request_payment;

use request::{abandon, show_on_invoice};
