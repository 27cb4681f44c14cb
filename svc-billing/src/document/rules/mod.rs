//! What makes documents right. Pure: no tables, no calls, no clock.

pub mod amounts;
pub mod input;
pub mod number;
pub mod search;
pub mod standing;
mod totals;
