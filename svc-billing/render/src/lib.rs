//! Documents on paper: what is on one ([`paper`]), and the PDF of it.

pub mod paper;

pub use paper::Paper;
