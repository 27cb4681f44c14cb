//! Documents and payments the way an integration sees them: through a real gateway, on real Postgres, beside the real
//! service of clients.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

mod accepting;
mod attachments;
mod concurrency;
mod counted;
mod creating;
mod credits;
mod deleting;
mod einvoices;
mod events;
mod filters;
mod finalizing;
mod lists;
mod numbers;
mod patches;
mod payments;
mod pdfs;
mod replays;
mod sending;
mod shapes;
mod support;
mod tenants;
mod versions;
