//! Direct debit and online payments as integrations, payers and the provider use them: through a real gateway, on real
//! Postgres, with the sandbox or a stand-in for Mollie as the provider.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where its fact is false")]

mod browser;
#[path = "../page/chromium.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod chromium;
mod collections;
mod events;
mod invoice_versions;
mod mandates;
mod mollie;
mod no_provider;
mod paying;
mod subscriptions;
mod surplus;
mod unknown_texts;
mod verification;
mod versions;
mod webhooks;
mod withdrawn;
mod world;
