//! The service as integrations and internal teams see it: over REST through a gateway and over gRPC, with the other
//! services that a test needs, on real Postgres.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where its fact is false")]

mod conversion;
mod deleted;
mod downloads;
mod event_listener;
mod events;
mod files;
mod filters;
mod followup;
mod hours;
mod long_pages;
mod notes;
mod projects;
mod reading;
mod references;
mod slow_readers;
mod stored;
mod support;
mod tasks;
mod uploads;
mod versions;
mod world;
