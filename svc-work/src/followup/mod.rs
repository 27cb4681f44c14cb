//! Follow-up: events about clients and deals that nobody works on. Reads tasks and notes from its own tables, and
//! asks relations and crm for clients and deals.
//!
//! The scan for deals is here and not in crm: crm would have to ask work for tasks, and work asks crm already.

mod clients;
mod deals;
pub(crate) mod scans;

use std::time::Duration;

/// How long a scan waits for another service to describe its records.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(5);
