//! Payment terms: the choices that the account offers for when an invoice is to be paid.

pub mod rpc;
pub mod store;

use proto::billing::PaymentTerm;

use crate::tax_rate::countries::is_dutch;

/// What a new account has.
pub fn defaults(country: &str) -> Vec<PaymentTerm> {
    let label = |days: i32| match (days, is_dutch(country)) {
        (0, true) => "Direct te betalen".to_owned(),
        (0, false) => "Due on receipt".to_owned(),
        (days, true) => format!("{days} dagen"),
        (days, false) => format!("{days} days"),
    };
    let term = |days: i32| PaymentTerm { code: format!("NET{days}"), days, label: label(days) };
    [0, 7, 14, 30, 60].map(term).into()
}
