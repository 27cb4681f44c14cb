//! The SQL in the sources of the product: each static statement is valid against the migrated schemas, and none asks for
//! what a distributed Postgres refuses. Read from the sources, because a statement that no test reaches counts as well.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where its fact is false")]

mod calls;
mod calls_tests;
mod definitions;
mod distributed;
mod prepared;
mod sources;
mod texts;
