//! The rules of subscriptions. Pure: no tables, no calls, no clock.

pub mod calendar;
pub mod lines;
pub mod plan;
pub mod terms;

#[cfg(test)]
mod change_model;
#[cfg(test)]
mod change_tests;
