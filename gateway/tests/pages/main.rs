//! The reference as people use it: in a real browser, without a database or a service behind it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where its fact is false")]

mod accessible;
mod browsing;
#[path = "../../../svc-billing/tests/page/chromium.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod chromium;
mod reader;
mod safe;
mod searching;
