//! Measures the API: over REST, next to pgbench with the service's own statements on the same server, and what both cost the
//! processes. `compare` does it for each operation, `growth` for lists of a small and a large account,
//! `events` for how long it takes from a change to what a flow does about it, `changes` for the change feed, and `idle` for
//! what everything costs when nothing happens.
//!
//! It shares the machine with what it measures: one thread, and little work for each request.

mod baseline;
mod bench;
mod changes;
mod clients;
mod compare;
mod database;
mod events;
mod export;
mod fill;
mod growth;
mod idle;
mod marks;
mod measure;
mod operations;
mod options;
mod pgbench;
mod process;
mod record;
mod replay;
mod report;
mod requests;
mod statement_log;

use std::process::ExitCode;

use clap::Parser;

use crate::options::Command;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Compare(options) => compare::run(&options).await,
        Command::Growth(options) => growth::run(&options).await,
        Command::Events(options) => events::run(&options).await,
        Command::Changes(options) => changes::run(&options).await,
        Command::Idle(options) => idle::run(&options).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("load: {fault}");
            ExitCode::FAILURE
        }
    }
}
