//! Subscriptions the way an integration sees them: through a real gateway, on real Postgres, beside the real service of
//! clients. The clock is held, and moved by the tests.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

mod changes;
mod creating;
mod ending;
mod generating;
mod killed;
mod lists;
mod replicas;
mod support;
