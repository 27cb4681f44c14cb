//! Printed documents: what is on one ([`printed`]), how amounts, dates and labels read in each language ([`text`]),
//! and its PDF ([`pdf`]). Uses no database, no clock and no account.

mod color;
pub mod pdf;
pub mod printed;
pub mod text;
mod typeset;

pub use pdf::{Attachment, Error, Rendered, Screen, Tones};
pub use printed::PrintedDocument;
pub use typeset::use_fonts_of;
