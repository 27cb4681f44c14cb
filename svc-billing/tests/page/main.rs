//! The page behind a document's `web_url`: through the real gateway, in a real browser, and in every state.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at what it did not expect")]

mod accept;
mod browser;
mod chromium;
mod hostile;
mod rendering;
#[path = "../support/mod.rs"]
mod samples;
mod states;
mod views;
mod world;
