//! Documents on paper: what is on one ([`paper`]), how amounts, dates and labels read in each language ([`text`]),
//! and the PDF of it ([`pdf`]).

pub mod paper;
pub mod pdf;
pub mod text;

pub use paper::Paper;
pub use pdf::{Attachment, Error, Screen, Tones};
