//! Validators of single values: each takes a text, and gives it back in its normal form or not at all. Pure; knows
//! neither fields nor faults; [`Form`] ties a format to the fault that names it.

pub mod bank;
pub mod country;
pub mod email;
mod form;
pub mod vat;
pub mod website;

pub use form::Form;

/// Without white space, in upper case: the normal form of most codes.
fn compact(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_uppercase()).collect()
}
