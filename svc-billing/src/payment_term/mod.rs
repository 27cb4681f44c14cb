//! Payment terms: the choices that the account offers for when an invoice is to be paid. The contract's message is the
//! record. The rpcs are in `settings_service`, which serves several resources.

pub(crate) mod operations;
pub(crate) mod store;

use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::billing::PaymentTerm;
use render::printed::Language;

use crate::language;

/// The terms of a new account in a country.
fn defaults(country: &str, now: DateTime<Utc>) -> Vec<PaymentTerm> {
    let label = |days: i32| match (days, language::of_country(country)) {
        (0, Language::Nl) => "Direct te betalen".to_owned(),
        (0, Language::En) => "Due on receipt".to_owned(),
        (days, Language::Nl) => format!("{days} dagen"),
        (days, Language::En) => format!("{days} days"),
    };
    let term = |days: i32| PaymentTerm {
        code: format!("NET{days}"),
        days,
        label: label(days),
        version: 1,
        updated_at: Some(timestamp(now)),
    };
    [0, 7, 14, 30, 60].map(term).into()
}
