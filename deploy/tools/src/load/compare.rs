//! Each operation over REST and by pgbench, in rounds that take turns.

use deploy_tools::Result;
use deploy_tools::http::authority;

use crate::bench::{Bench, Case};
use crate::database::Database;
use crate::fill::{self, DAYS};
use crate::operations::{CLIENT, Catalogue, DEAL, INVOICE, Operation, TASK, TICKET};
use crate::options::Compare;
use crate::process::{Memory, POSTGRES};
use crate::report::{Column, Figures, Row, Table, column};
use crate::requests::Target;

/// Clients that invoices are spread over, at most.
const MAX_CLIENTS_OF_INVOICES: usize = 1_000;

const SPEED: [Column; 9] = [
    column("req/s", "requests_per_second", 0),
    column("p50 ms", "p50_ms", 2),
    column("p99 ms", "p99_ms", 2),
    column("pgbench tps", "pgbench_per_second", 0),
    column("ratio", "ratio", 2),
    column("gateway CPU ms", "cpu_ms.gateway", 3),
    column("service CPU ms", "service_cpu_ms", 3),
    column("Postgres CPU ms", "cpu_ms.postgres", 3),
    column("load CPU ms", "cpu_ms.load", 3),
];
const MEMORY: [Column; 2] = [column("idle MB", "idle_mb", 1), column("after the run MB", "after_mb", 1)];

pub(crate) async fn run(options: &Compare) -> Result<()> {
    let setup = &options.setup;
    let catalogue = Catalogue::read()?;
    let mut operations = options.choose(&catalogue.operations)?;
    // Before anything is asked of the processes.
    let (watched, idle) = (setup.watched(), setup.watched().memory());
    let database = setup.database()?;
    if database.is_none() {
        eprintln!("Without the database there are no invoices to measure with.");
        operations.retain(|operation| operation.resource != INVOICE);
    }
    let authority = authority(&setup.base_url)?;
    let many = options.many_accounts(authority)?;
    if many.is_none() {
        eprintln!("Without the keys of many accounts nothing is measured over many accounts.");
        operations.retain(|operation| !operation.many_accounts);
    }
    let mut target = Target::new(authority, &options.key);
    let account = fill(options.records, &catalogue, &operations, &mut target, database.as_ref()).await?;
    let target_of =
        |operation: &Operation| many.as_ref().filter(|_| operation.many_accounts).unwrap_or(&target);
    for operation in &operations {
        fill::first_look(target_of(operation), &catalogue, operation).await?;
    }
    let baseline = setup.baseline()?;
    let mut version = "unknown".to_owned();
    match &baseline {
        Some(baseline) => version = baseline.database().run("public", "show server_version").await?,
        None => eprintln!("Without the database and its log there is no comparison with pgbench."),
    }
    let bench = Bench { rounds: &options.rounds, account: &account, baseline, watched };
    let mut rows = Vec::new();
    for operation in operations {
        let resource = catalogue.resource(&operation.resource);
        let (name, service) = (&operation.name, resource.service.as_str());
        let target = target_of(operation);
        let plan = bench.plan(name, service, target, &operation.recorded(resource)).await?;
        for connections in options.connections.iter().map(|asked| operation.connections(*asked)) {
            let labels = vec![name.clone(), connections.to_string()];
            let (load, plan) = (operation.load(resource), plan.clone());
            let case = Case { labels, target, load, service, connections, plan };
            rows.extend(bench.run(&[case]).await?);
        }
    }
    let speed = Table { labels: &["operation", "connections"], columns: &SPEED, rows };
    let rows = memory_rows(&idle, &bench.watched.memory());
    let memory = Table { labels: &["resident memory"], columns: &MEMORY, rows };
    let records = options.records;
    let settings = format!("PostgreSQL {version}, {records} records of each resource, {}", options.rounds);
    setup.publish("bench", settings, vec![speed, memory])
}

fn memory_rows(idle: &Memory, after: &Memory) -> Vec<Row> {
    let row = |name: &str, idle: Option<f64>, after: Option<f64>| {
        let mut figures = Figures::default();
        figures.put("idle_mb", idle);
        figures.put("after_mb", after);
        Row::new(vec![name.to_owned()], vec![figures])
    };
    let known = |name: &str| row(name, idle.get(name).copied(), after.get(name).copied());
    let programs = || idle.keys().map(String::as_str).filter(|name| *name != POSTGRES);
    let sum = |memory: &Memory| Some(programs().filter_map(|name| memory.get(name)).sum());
    programs().map(known).chain([row("together", sum(idle), sum(after)), known(POSTGRES)]).collect()
}

/// Fills the account with what the operations need, and leaves the tables as after hours of running: statistics are
/// known, and the search indexes have no pending entries. Returns the account's id when the database is known.
async fn fill(
    count: u64,
    catalogue: &Catalogue,
    operations: &[&Operation],
    target: &mut Target,
    database: Option<&Database>,
) -> Result<String> {
    let is_needed = |resource: &str| operations.iter().any(|operation| operation.resource == resource);
    fill::over_rest(target, catalogue, CLIENT, count).await?;
    for resource in [DEAL, TASK, TICKET].into_iter().filter(|resource| is_needed(resource)) {
        fill::over_rest(target, catalogue, resource, count).await?;
    }
    if is_needed(DEAL) {
        fill::read_phases(target).await?;
    }
    let Some(database) = database else { return Ok(String::new()) };
    let clients = target.ids(CLIENT);
    let account = database.account_of(&clients[0]).await?;
    if is_needed(INVOICE) {
        let clients = &clients[..clients.len().min(MAX_CLIENTS_OF_INVOICES)];
        fill::invoices(target, count, database, &account, clients, DAYS).await?;
        fill::read_ids(target, INVOICE, &catalogue.resource(INVOICE).path, count).await?;
    }
    // A first reply changes the status of a new ticket too, which is a second event: no reply is to be that one.
    let waiting = format!("update support.ticket set status = 'waiting' where account_id = '{account}';");
    database.run("support", &format!("{waiting} vacuum analyze;")).await?;
    Ok(account)
}
