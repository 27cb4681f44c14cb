//! What billing tells because time passes, with a clock that the test moves: through a real gateway, on real Postgres.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

mod clients;
mod documents;
mod sharing;
mod subscriptions;
mod world;
