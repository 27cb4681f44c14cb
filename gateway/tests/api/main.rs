//! The whole path of a request: HTTP client, gateway, services, Postgres; nothing in between is pretended.

mod browser;
mod clients;
mod corpus;
mod coverage;
mod errors;
mod idempotency;
mod limits;
mod lists;
mod support;
