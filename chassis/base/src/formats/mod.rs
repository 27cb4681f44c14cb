//! Validators of single values: each takes a text and returns its normal form, or `None`. They are pure and independent
//! of fields and faults; [`Form`] connects a format with its fault.

pub mod bank;
pub mod country;
pub mod email;
mod form;
pub mod vat;
pub mod website;

pub use form::Form;

/// Removes white space and converts to upper case, which is the normal form of most codes.
fn compact(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_uppercase()).collect()
}
