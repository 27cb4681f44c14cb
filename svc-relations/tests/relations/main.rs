//! The service on real Postgres, called over gRPC as the gateway and other services call it.

#![expect(clippy::unwrap_used, reason = "a test stops where its assumption is false")]

mod changes;
mod clients;
mod concurrency;
mod custom_fields;
mod events;
mod links;
mod lists;
mod look_ups;
mod suppliers;
mod support;
mod tenants;
mod versions;
