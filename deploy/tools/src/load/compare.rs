//! Each operation over REST and by pgbench, in rounds that take turns.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use deploy_tools::http::authority;

use crate::baseline::Baseline;
use crate::database::Databases;
use crate::fill;
use crate::measure::{self, Span};
use crate::operations::{Operation, Resource};
use crate::options::Compare;
use crate::process::Watched;
use crate::publish;
use crate::report::{self, Measured, Numbers, Report, Settings};
use crate::requests::{Load, Target};
use crate::table;

pub async fn run(options: &Compare) -> Result<(), String> {
    let mut operations = options.operations();
    let place = &options.place;
    let watched = Watched::new(place.processes.clone(), place.postmaster);
    let databases = place.databases()?;
    let mut report = begin(options, &watched);
    eprintln!("Measuring takes about {} s, after up to a minute of filling.", options.duration().as_secs());
    let mut target = Target::new(authority(&place.base_url)?.to_owned(), options.key.clone());
    target.clients = fill::clients(&Arc::new(target.clone()), options.clients).await?;
    let account = match &databases {
        Some(databases) => databases.account_of(&target.clients[0]).await?,
        None => String::new(),
    };
    for resource in Resource::ALL.into_iter().filter(|resource| *resource != Resource::Client) {
        let is_measured = operations.iter().any(|operation| operation.resource == resource);
        match databases.as_ref().and_then(|databases| databases.find(resource)) {
            Some(database) if is_measured => {
                fill::rows(&mut target, (resource, options.wanted(resource)), database, &account).await?;
            }
            Some(_) => {}
            None => {
                let (service, name) = (resource.service(), resource.list());
                eprintln!("Without the database of {service} there are no {name}s to measure with.");
                operations.retain(|operation| operation.resource != resource);
            }
        }
    }
    let target = Arc::new(target);
    fill::first_look(&target, &operations).await?;
    let pgbench = baseline(options, databases, account, &target, &mut report).await?;
    for operation in operations {
        let bench = Bench { options, target: &target, pgbench: pgbench.as_ref(), watched: &watched };
        report.results.extend(bench.operation(operation).await?);
    }
    report.memory_kb.after = watched.memory();
    report.memory_kb.after_total = report.memory_kb.after.values().sum();
    report.memory_kb.postgres_after = watched.postgres_memory();
    publish::publish(place, "bench", &report, &table::render(&report))
}

/// What is known before anything is asked of the processes.
fn begin(options: &Compare, watched: &Watched) -> Report {
    let mut report = Report {
        facts: options.place.facts.iter().cloned().collect(),
        machine: report::machine(),
        settings: Settings {
            clients: options.clients,
            invoices: options.invoices,
            deals: options.deals,
            tasks: options.tasks,
            tickets: options.tickets,
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
    options: &Compare,
    databases: Option<Databases>,
    account: String,
    target: &Target,
    report: &mut Report,
) -> Result<Option<Baseline>, String> {
    let Some(databases) = databases else {
        eprintln!("Without a database there is no comparison with pgbench.");
        return Ok(None);
    };
    let folders = (options.place.scripts.as_path(), options.place.work.as_path());
    let baseline = Baseline::new(databases, folders, account, target)?;
    report.facts.insert("postgres".to_owned(), baseline.server_version().await?);
    drain(&baseline, Resource::Client).await?;
    baseline.settle().await?;
    Ok(Some(baseline))
}

struct Bench<'a> {
    options: &'a Compare,
    target: &'a Arc<Target>,
    pgbench: Option<&'a Baseline>,
    watched: &'a Watched,
}

impl Bench<'_> {
    /// All rounds of an operation: REST, pgbench, REST, pgbench, …, so that a machine that slows down slows both.
    async fn operation(&self, operation: Operation) -> Result<Vec<Measured>, String> {
        let mut rounds = vec![Vec::new(); self.options.connections.len()];
        for round in 1..=self.options.rounds {
            for (connections, numbers) in self.options.connections.iter().zip(&mut rounds) {
                let connections = operation.connections(*connections);
                let span = Span {
                    connections,
                    warm_up: Duration::from_secs(self.options.warm_up),
                    measured: Duration::from_secs(self.options.seconds),
                };
                let found = self.pair(operation, span).await?;
                eprintln!("  {}", progress(operation, connections, (round, self.options.rounds), &found));
                numbers.push(found);
            }
        }
        let connections = self.options.connections.iter().zip(rounds);
        Ok(connections
            .map(|(count, rounds)| Measured::new(operation, operation.connections(*count), rounds))
            .collect())
    }

    async fn pair(&self, operation: Operation, span: Span) -> Result<Numbers, String> {
        let rest = measure::run(self.target, &Load::Operation(operation), span, self.watched).await?;
        let Some(pgbench) = self.pgbench else { return Ok(Numbers::new(&rest, None)) };
        if operation.writes() {
            drain(pgbench, operation.resource).await?;
        }
        let baseline = pgbench.run(operation, span, self.watched).await?;
        if operation.writes() {
            pgbench.clean(operation.resource).await?;
        }
        Ok(Numbers::new(&rest, Some(&baseline)))
    }
}

async fn drain(baseline: &Baseline, resource: Resource) -> Result<(), String> {
    let left = baseline.drain_events(resource).await?;
    if left > 0 {
        eprintln!("  {left} events are still on their way; delivering them slows the next round down");
    }
    Ok(())
}

fn progress(operation: Operation, connections: u32, (round, rounds): (u32, u32), found: &Numbers) -> String {
    let mut line = format!(
        "{operation:<16}{connections:>3} connections, round {round}/{rounds}: {:>6.0} req/s",
        found.requests_per_second
    );
    if let (Some(rate), Some(ratio)) = (found.pgbench_per_second, found.ratio) {
        // Writing to a String cannot fail.
        let _ = write!(line, ", pgbench {rate:>6.0}, ratio {ratio:.2}");
    }
    line
}
