//! Tests of the database layer on real Postgres.

mod audit;
mod lazy;
mod link;
mod lists;
mod log;
mod migrations;
mod numbers;
mod outage;
mod pool;
mod pooler;
mod prepared;
mod references;
mod rows;
mod segments;
mod sequence;
mod withdrawals;
mod write;
