//! The whole path of a request: HTTP client, gateway, services, Postgres; nothing in between is pretended.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where its fact is false")]

mod anonymity;
mod audit;
mod automation;
mod batches;
mod browser;
mod chain;
mod changes;
#[path = "../../../svc-billing/tests/page/chromium.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod chromium;
mod clients;
mod compression;
mod concurrency_limit;
mod conditional;
mod connections;
mod corpus;
mod coverage;
mod deals;
mod doctor;
mod errors;
mod expansions;
mod exports;
mod flow_chains;
mod generated;
mod guarded;
mod idempotency;
mod ledger;
mod limits;
mod lists;
mod lost_answers;
mod own_keys;
mod pages;
mod provisioning;
mod public;
mod readiness;
mod reference_page;
mod reference_sample;
mod rehearsal;
mod removal;
mod replicas;
mod schemas;
mod selections;
mod snapshots;
mod support;
mod unknown_names;
mod uploads;
mod working_mesh;
mod year;
