//! Subscriptions as an integration uses them: through a real gateway, on real Postgres, beside the real service of
//! clients. The clock stands still and is moved by the tests.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

mod changes;
mod creating;
mod ending;
mod generating;
mod killed;
mod lists;
#[path = "../ready/mod.rs"]
mod ready;
mod replicas;
mod support;
mod versions;
