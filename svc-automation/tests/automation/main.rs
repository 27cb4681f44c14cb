//! Automation through the real service on real Postgres, beside a real service that its flows call.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where its fact is false")]

mod access;
mod approvals;
mod bounds;
mod calls;
mod events;
mod filters;
mod flows;
mod hanging;
mod purges;
mod restarts;
mod schedules;
mod scopes;
mod steps;
mod stored_enums;
mod support;
mod takeover;
mod versions;
mod webhooks;
