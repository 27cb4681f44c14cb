//! Direct debit and paying online, as integrations, payers and the provider meet them: through a real gateway, on real
//! Postgres, with the sandbox as the provider, or a stand-in of
//! Mollie.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where its fact is false")]

mod browser;
#[path = "../page/chromium.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod chromium;
mod closed;
mod collections;
mod events;
mod mandates;
mod mollie;
mod paying;
mod subscriptions;
mod surplus;
mod verification;
mod webhooks;
mod withdrawn;
mod world;
