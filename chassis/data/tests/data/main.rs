//! The database of a service, on a real Postgres.

mod audit;
mod link;
mod lists;
mod migrations;
mod outage;
mod pool;
mod pooler;
mod references;
mod write;
