//! The service on real Postgres, behind a gateway, called as integrations and internal teams call it; mail in and out
//! over real SMTP.

#![expect(clippy::unwrap_used, reason = "a test stops where its assumption is false")]

mod attachments;
mod channels;
mod concurrency;
mod dns;
mod domain_checks;
mod domains;
mod events;
mod filters;
mod intake;
mod loops;
mod messages;
mod round_trip;
mod scans;
mod smtp;
mod statuses;
mod tenants;
mod tickets;
mod versions;
mod world;
