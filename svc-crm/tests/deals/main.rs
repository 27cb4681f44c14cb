//! Deals through the gateway and pipelines over gRPC: real services, real Postgres.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where its fact is false")]

mod accepted_quotes;
mod changing;
mod concurrency;
mod creating;
mod events;
mod lists;
mod moving;
mod pipelines;
mod scans;
mod sources;
mod stored;
mod support;
mod tenants;
mod versions;
