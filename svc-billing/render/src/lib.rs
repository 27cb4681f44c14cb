//! Printed documents: what is on one ([`printed`]), how amounts, dates and labels read in each language ([`text`]),
//! and its PDF ([`pdf`]). Uses no database, no clock and no account.

pub mod pdf;
pub mod printed;
pub mod text;

pub use pdf::{Attachment, Error, Screen, Tones};
pub use printed::PrintedDocument;
