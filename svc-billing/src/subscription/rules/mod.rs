//! The rules of subscriptions. Pure: no tables, no calls, no clock.

pub(crate) mod calendar;
pub(crate) mod lines;
pub(crate) mod plan;
pub(crate) mod terms;

#[cfg(test)]
mod change_model;
#[cfg(test)]
mod change_tests;
