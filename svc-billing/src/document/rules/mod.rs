//! The rules of documents. Pure: no SQL, no calls, no clock.

pub(crate) mod amounts;
pub(crate) mod input;
pub(crate) mod number;
pub(crate) mod printed;
pub(crate) mod printed_state;
pub(crate) mod search;
pub(crate) mod settlement;
pub(crate) mod status;
mod totals;
pub(crate) mod vat_rate;
