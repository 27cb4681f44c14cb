//! The rules of documents. Pure: no SQL, no calls, no clock.

pub mod amounts;
pub mod input;
pub mod number;
pub mod printed;
pub mod printed_state;
pub mod search;
pub mod settlement;
pub mod status;
mod totals;
pub mod vat_rate;
