//! What is written about online payments, each function inside a write transaction. No function calls the provider;
//! the commands it queues are executed after the commit.

mod checkout;
mod collect;
mod record;
mod request;

pub use checkout::{StartCheckout, start_checkout};
pub use collect::collect;
pub use record::{CommandOutcome, Outcome, record};
pub use request::request_payment;

use request::{abandon, show_on_invoice};
