//! Validators of single values: each takes a text, and gives it back in its normal form or not at all. Pure; knows
//! neither fields nor faults.

pub mod bank;
pub mod country;
pub mod email;
pub mod vat;
pub mod website;

/// Without white space, in upper case: the normal form of most codes.
fn compact(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_uppercase()).collect()
}
