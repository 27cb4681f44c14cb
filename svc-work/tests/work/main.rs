//! The service as integrations and internal teams see it: over REST through a gateway and over gRPC, with the services
//! that it asks, on real Postgres.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where its fact is false")]

mod conversion;
mod deleted;
mod downloads;
mod events;
mod files;
mod followup;
mod heard;
mod hours;
mod long_pages;
mod notes;
mod projects;
mod references;
mod support;
mod tasks;
mod unread;
mod uploads;
