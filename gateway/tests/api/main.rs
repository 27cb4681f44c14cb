//! The whole path of a request: HTTP client, gateway, services, Postgres; nothing in between is pretended.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where its fact is false")]

mod audit;
mod automation;
mod browser;
mod chain;
mod changes;
mod clients;
mod concurrency_limit;
mod conditional;
mod connections;
mod corpus;
mod coverage;
mod deals;
mod doctor;
mod errors;
mod flow_chains;
mod guarded;
mod idempotency;
mod ledger;
mod limits;
mod lists;
mod lost_answers;
mod pages;
mod provisioning;
mod public;
mod readiness;
mod reference_sample;
mod rehearsal;
mod replicas;
mod schemas;
mod selections;
mod snapshots;
mod support;
mod working_mesh;
mod year;
