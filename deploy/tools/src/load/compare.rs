//! Each operation over REST and by pgbench, in rounds that take turns.

use deploy_tools::http::authority;
use serde_json::json;

use crate::baseline::Baseline;
use crate::compare_report::{Measured, MemoryReport, figures, speed};
use crate::database::Database;
use crate::fill;
use crate::measure::{self, Span};
use crate::operations::{Action, Operation, Resource};
use crate::options::Compare;
use crate::pgbench::{self, Plan};
use crate::process::Watched;
use crate::report::{Circumstances, Figures, publish};
use crate::requests::{Load, Target};

/// A list for which the service has to count: all invoices are newer than that.
const COUNTED: &str = "/v1/invoices?created_from=2000-01-01";

pub(crate) async fn run(options: &Compare) -> Result<(), String> {
    let mut operations = options.operations();
    let setup = &options.setup;
    let watched = Watched { processes: setup.processes.clone(), postmaster: setup.postmaster };
    // Before anything is asked of the processes.
    let mut memory = MemoryReport { idle: watched.memory(), ..MemoryReport::default() };
    let mut circumstances = Circumstances::new(setup);
    let database = setup.database()?;
    if database.is_none() {
        eprintln!("Without the database there are no invoices to measure with.");
        operations.retain(|operation| operation.resource != Resource::Invoice);
    }
    let mut target = Target::new(authority(&setup.base_url)?, &options.key);
    let account = fill(options, &operations, &mut target, database.as_ref()).await?;
    fill::first_look(&target, &operations).await?;
    let baseline = setup.baseline()?;
    match &baseline {
        Some(baseline) => {
            let version = baseline.server_version().await?;
            circumstances.facts.insert("postgres".to_owned(), version);
        }
        None => eprintln!("Without the database and its log there is no comparison with pgbench."),
    }
    let bench = Bench { options, target, account, baseline, watched };
    let mut results = Vec::new();
    for operation in operations {
        results.extend(bench.operation(operation).await?);
    }
    memory.after = bench.watched.memory();
    memory.postgres_after = bench.watched.postgres_memory();
    let tables = format!("{}\n\n{}\n{}", heading(options, &circumstances), speed(&results), memory.table());
    let Compare { clients, invoices, deals, tasks, tickets, rounds, connections, .. } = options;
    let report = json!({
        "facts": circumstances.facts,
        "machine": circumstances.machine,
        "settings": {
            "clients": clients, "invoices": invoices, "deals": deals, "tasks": tasks, "tickets": tickets,
            "rounds": rounds.count, "seconds": rounds.seconds, "warm_up_seconds": rounds.warm_up,
            "connections": connections,
        },
        "memory_kb": memory,
        "results": results,
    });
    publish(setup, "bench", &report, &tables)
}

fn heading(options: &Compare, circumstances: &Circumstances) -> String {
    let Compare { clients, invoices, deals, tasks, tickets, rounds, .. } = options;
    format!(
        "{}, PostgreSQL {}, {clients} clients, {invoices} invoices, {deals} deals, {tasks} tasks, {tickets} tickets, \
         medians of {} rounds of {} s.",
        circumstances.summary(),
        circumstances.get("postgres"),
        rounds.count,
        rounds.seconds
    )
}

/// Fills the account with what the operations need, and leaves the tables as after hours of running: statistics are
/// known, and the search indexes have no pending entries. Returns the account's id when the database is known.
async fn fill(
    options: &Compare,
    operations: &[Operation],
    target: &mut Target,
    database: Option<&Database>,
) -> Result<String, String> {
    fill::over_rest(target, Resource::Client, options.clients).await?;
    let account = match database {
        Some(database) => database.account_of(&target.ids(Resource::Client)[0]).await?,
        None => String::new(),
    };
    for resource in Resource::ALL {
        if !operations.iter().any(|operation| operation.resource == resource) {
            continue;
        }
        match (resource, database) {
            (Resource::Client, _) => {}
            (Resource::Invoice, Some(database)) => {
                fill::invoices(target, options.invoices, database, &account).await?;
            }
            _ => fill::over_rest(target, resource, options.count(resource)).await?,
        }
    }
    if let Some(database) = database {
        // A first reply changes the status of a new ticket too, which is a second event: no reply is to be that one.
        let waiting = format!("update support.ticket set status = 'waiting' where account_id = '{account}';");
        database.run("support", &format!("{waiting} vacuum analyze;")).await?;
    }
    Ok(account)
}

struct Bench<'a> {
    options: &'a Compare,
    target: Target,
    account: String,
    baseline: Option<Baseline>,
    watched: Watched,
}

impl Bench<'_> {
    /// All rounds of an operation: REST, pgbench, REST, pgbench, …, so that a machine that slows down slows both.
    async fn operation(&self, operation: Operation) -> Result<Vec<Measured>, String> {
        let plan = self.plan(operation).await?;
        let mut rounds = vec![Vec::new(); self.options.connections.len()];
        for round in 1..=self.options.rounds.count {
            for (asked, numbers) in self.options.connections.iter().zip(&mut rounds) {
                let span = self.options.rounds.span(operation.connections(*asked));
                let found = self.round(operation, plan.as_ref(), span).await?;
                let of = self.options.rounds.count;
                let connections = span.connections;
                eprintln!(
                    "  {operation:<16}{connections:>3} connections, round {round}/{of}: {:>6} req/s, pgbench {:>6}, ratio {}",
                    found.cell("requests_per_second", 0),
                    found.cell("pgbench_per_second", 0),
                    found.cell("ratio", 2)
                );
                numbers.push(found);
            }
        }
        let measured = self.options.connections.iter().zip(rounds);
        Ok(measured
            .map(|(asked, rounds)| Measured::new(operation, operation.connections(*asked), rounds))
            .collect())
    }

    async fn plan(&self, operation: Operation) -> Result<Option<Plan>, String> {
        let Some(baseline) = &self.baseline else { return Ok(None) };
        let load = match operation.action {
            Action::Counted => Load::Path(COUNTED.to_owned()),
            _ => Load::Operation(operation),
        };
        // Also of what was filled in: delivering events would be part of the recording's pauses and of the first round.
        self.drain(baseline, operation.resource).await?;
        baseline.plan(operation.name, operation.resource, &self.target, &load).await.map(Some)
    }

    async fn round(&self, operation: Operation, plan: Option<&Plan>, span: Span) -> Result<Figures, String> {
        let rest = measure::run(&self.target, &Load::Operation(operation), span, &self.watched).await?;
        let Some((baseline, plan)) = self.baseline.as_ref().zip(plan) else {
            return Ok(figures(&rest, None));
        };
        if operation.writes() {
            self.drain(baseline, operation.resource).await?;
        }
        let replayed = pgbench::run(&baseline.recorder.database, plan, span, &self.watched).await?;
        if operation.writes() {
            baseline.clean(operation.resource, &self.account).await?;
        }
        Ok(figures(&rest, Some(&replayed)))
    }

    async fn drain(&self, baseline: &Baseline, resource: Resource) -> Result<(), String> {
        let left = baseline.drain_events(resource, &self.account).await?;
        if left > 0 {
            eprintln!("  {left} events are still on their way; delivering them slows the next round down");
        }
        Ok(())
    }
}
