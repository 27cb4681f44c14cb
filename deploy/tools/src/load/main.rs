//! Measures the API: rounds over REST, each next to a round of pgbench with the same statements on the same server, and
//! what both cost the processes.
//!
//! It owns the order of things; the parts are in the modules. It shares the machine with what it measures: one thread,
//! and little work for each request.

mod fill;
mod histogram;
mod measure;
mod operations;
mod options;
mod pgbench;
mod process;
mod report;
#[cfg(test)]
mod scripts_tests;
mod table;

use std::fmt::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use deploy_tools::http::authority;

use crate::measure::Span;
use crate::operations::{Operation, Target};
use crate::options::Options;
use crate::pgbench::Pgbench;
use crate::process::Watched;
use crate::report::{Measured, Numbers, Report, Settings};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("load: {fault}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<(), String> {
    let operations = options.operations();
    let watched = Watched::new(options.processes.clone(), options.postmaster);
    let mut report = begin(options, &watched);
    eprintln!("Measuring takes about {} s, after up to a minute of filling.", options.duration().as_secs());
    let mut target = Target::new(authority(&options.base_url)?.to_owned(), options.key.clone());
    target.ids = fill::fill(&Arc::new(target.clone()), options.clients).await?;
    let target = Arc::new(target);
    fill::first_look(&target, &operations).await?;
    let pgbench = baseline(options, &target, &mut report).await?;
    for operation in operations {
        let bench = Bench { options, target: &target, pgbench: pgbench.as_ref(), watched: &watched };
        report.results.extend(bench.operation(operation).await?);
    }
    report.memory_kb.after = watched.memory();
    report.memory_kb.after_total = report.memory_kb.after.values().sum();
    report.memory_kb.postgres_after = watched.postgres_memory();
    finish(options, &report)
}

/// What is known before anything is asked of the processes.
fn begin(options: &Options, watched: &Watched) -> Report {
    let mut report = Report {
        facts: options.facts.iter().cloned().collect(),
        machine: report::machine(),
        settings: Settings {
            clients: options.clients,
            rounds: options.rounds,
            seconds: options.seconds,
            warm_up_seconds: options.warm_up,
            connections: options.connections.clone(),
        },
        ..Report::default()
    };
    report.memory_kb.idle = watched.memory();
    report.memory_kb.idle_total = report.memory_kb.idle.values().sum();
    let count = report.memory_kb.idle.len();
    if count > 0 {
        eprintln!("Idle, {count} processes have {} MB together.", report.memory_kb.idle_total / 1024);
    }
    report
}

async fn baseline(
    options: &Options,
    target: &Target,
    report: &mut Report,
) -> Result<Option<Pgbench>, String> {
    let Some(programs) = &options.pg_programs else {
        eprintln!("Without a database there is no comparison with pgbench.");
        return Ok(None);
    };
    std::fs::create_dir_all(&options.work).map_err(|fault| format!("{}: {fault}", options.work.display()))?;
    let pgbench =
        Pgbench::new(programs.clone(), options.scripts.clone(), options.work.clone(), &target.ids).await?;
    report.facts.insert("postgres".to_owned(), pgbench.server_version().await?);
    drain(&pgbench).await?;
    pgbench.settle().await?;
    Ok(Some(pgbench))
}

struct Bench<'a> {
    options: &'a Options,
    target: &'a Arc<Target>,
    pgbench: Option<&'a Pgbench>,
    watched: &'a Watched,
}

impl Bench<'_> {
    /// All rounds of an operation: REST, pgbench, REST, pgbench, …, so that a machine that slows down slows both.
    async fn operation(&self, operation: Operation) -> Result<Vec<Measured>, String> {
        let mut rounds = vec![Vec::new(); self.options.connections.len()];
        for round in 1..=self.options.rounds {
            for (connections, numbers) in self.options.connections.iter().zip(&mut rounds) {
                let span = Span {
                    connections: *connections,
                    warm_up: Duration::from_secs(self.options.warm_up),
                    measured: Duration::from_secs(self.options.seconds),
                };
                let found = self.pair(operation, span).await?;
                eprintln!("  {}", progress(operation, *connections, (round, self.options.rounds), &found));
                numbers.push(found);
            }
        }
        let connections = self.options.connections.iter().zip(rounds);
        Ok(connections.map(|(count, rounds)| Measured::new(operation, *count, rounds)).collect())
    }

    async fn pair(&self, operation: Operation, span: Span) -> Result<Numbers, String> {
        let rest = measure::run(self.target, operation, span, self.watched).await?;
        let Some(pgbench) = self.pgbench else { return Ok(Numbers::new(&rest, None)) };
        if operation.writes() {
            drain(pgbench).await?;
        }
        let baseline = pgbench.run(operation, span, self.watched).await?;
        if operation.writes() {
            pgbench.clean().await?;
        }
        Ok(Numbers::new(&rest, Some(&baseline)))
    }
}

async fn drain(pgbench: &Pgbench) -> Result<(), String> {
    let left = pgbench.drain_events().await?;
    if left > 0 {
        eprintln!("  {left} events are still on their way; delivering them slows the next round down");
    }
    Ok(())
}

fn progress(operation: Operation, connections: u32, (round, rounds): (u32, u32), found: &Numbers) -> String {
    let name = operation.name();
    let mut line = format!(
        "{name:<8}{connections:>3} connections, round {round}/{rounds}: {:>6.0} req/s",
        found.requests_per_second
    );
    if let (Some(rate), Some(ratio)) = (found.pgbench_per_second, found.ratio) {
        // Writing to a String cannot fail.
        let _ = write!(line, ", pgbench {rate:>6.0}, ratio {ratio:.2}");
    }
    line
}

fn finish(options: &Options, report: &Report) -> Result<(), String> {
    let tables = table::render(report);
    println!("\n{tables}");
    if let Some(file) = &options.out {
        let json = serde_json::to_string_pretty(report).map_err(|fault| fault.to_string())?;
        std::fs::write(file, json + "\n").map_err(|fault| format!("{}: {fault}", file.display()))?;
        eprintln!("The report is in {}", file.display());
    }
    if let Some(file) = &options.readme {
        let shown = |fault: &dyn std::fmt::Display| format!("{}: {fault}", file.display());
        let document = std::fs::read_to_string(file).map_err(|fault| shown(&fault))?;
        let document = table::replace(&document, &tables).map_err(|fault| shown(&fault))?;
        std::fs::write(file, document).map_err(|fault| shown(&fault))?;
        eprintln!("The tables are in {}", file.display());
    }
    Ok(())
}
