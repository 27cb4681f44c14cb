//! The data that is measured on: the account is filled up to the wanted number of clients, over REST, and of everything
//! else, by the database; their ids are read back. Also a first look at each operation, so that a wrong answer shows
//! before anything is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use deploy_tools::http::Connection;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::database::Database;
use crate::deals;
use crate::documents;
use crate::operations::{Operation, Resource};
use crate::requests::{Load, Requests, Target};
use crate::tasks;
use crate::tickets;

const CONNECTIONS: u64 = 16;
/// How often a line of progress is printed.
const PROGRESS: u64 = 2_000;
const PAGE: u64 = 100;

/// Invoices, deals and tickets are spread over so many clients.
const CLIENTS_IN_USE: usize = 1_000;

/// The first half of the ids of deals, tasks and tickets; the second one counts, so that pgbench can compute the id of any.
pub const ID_HIGH: i64 = 0x019a_8c5e_7d1b_7000;

/// In SQL, the id of the entry with the number `i`.
pub fn id() -> String {
    format!("encode(int8send({ID_HIGH}) || int8send(-9223372036854775807 + i), 'hex')::uuid")
}

/// What is to be made of these.
pub struct Wanted<'a> {
    pub account: &'a str,
    /// Ids that the entries are spread over.
    pub clients: &'a [String],
    /// The numbers of the first and the last one.
    pub from: u64,
    pub to: u64,
}

impl Wanted<'_> {
    pub fn count(&self) -> u64 {
        self.to + 1 - self.from
    }
}

/// Brings the account to `wanted` clients; returns the ids of as many of its newest.
pub async fn clients(target: &Arc<Target>, wanted: u64) -> Result<Vec<String>, String> {
    let present = Reader::open(target).await?.total(Resource::Client).await?;
    if present < wanted {
        create(target, present, wanted).await?;
    }
    // A new connection: the gateway closes one that is silent for as long as the filling may take.
    Reader::open(target).await?.ids(Resource::Client, wanted).await
}

/// The same for what the database makes; the target gets to know what there is.
pub async fn rows(
    target: &mut Target,
    (resource, wanted): (Resource, u64),
    database: &Database,
    account: &str,
) -> Result<(), String> {
    let present = Reader::open(target).await?.total(resource).await?;
    if present < wanted {
        let clients = &target.clients[..target.clients.len().min(CLIENTS_IN_USE)];
        let rows = Wanted { account, clients, from: present + 1, to: wanted };
        match resource {
            Resource::Client => return Err("clients are made over REST".to_owned()),
            Resource::Invoice => {
                let count = rows.count();
                documents::fill(database, &documents::Wanted { account, clients, count }).await?;
            }
            Resource::Deal => deals::fill(database, &rows).await?,
            Resource::Task => tasks::fill(database, &rows).await?,
            Resource::Ticket => tickets::fill(database, &rows).await?,
        }
    }
    let mut reader = Reader::open(target).await?;
    let ids = reader.ids(resource, wanted).await?;
    let phases = if resource == Resource::Deal { reader.phases().await? } else { Vec::new() };
    match resource {
        Resource::Client => target.clients = ids,
        Resource::Invoice => target.invoices = ids,
        Resource::Deal => (target.deals, target.phases) = (ids, phases),
        Resource::Task => target.tasks = ids,
        Resource::Ticket => target.tickets = ids,
    }
    Ok(())
}

async fn create(target: &Arc<Target>, from: u64, to: u64) -> Result<(), String> {
    eprintln!("Filling the account with {} clients", to - from);
    let next = Arc::new(AtomicU64::new(from));
    let mut workers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        workers.spawn(create_some(Arc::clone(target), Arc::clone(&next), to));
    }
    while let Some(done) = workers.join_next().await {
        done.map_err(|fault| fault.to_string())??;
    }
    Ok(())
}

async fn create_some(target: Arc<Target>, next: Arc<AtomicU64>, end: u64) -> Result<(), String> {
    let mut connection = Connection::open(&target.authority).await.map_err(|fault| fault.to_string())?;
    let mut requests = Requests::new(&target, Load::Path(String::new()), "fill");
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= end {
            return Ok(());
        }
        let answer =
            connection.send(requests.fill_client(number)).await.map_err(|fault| fault.to_string())?;
        if answer.status != 201 {
            return Err(format!("a create was answered with {}: {}", answer.status, answer.text()));
        }
        if (number + 1).is_multiple_of(PROGRESS) {
            eprintln!("  {} clients", number + 1);
        }
    }
}

/// Sends each operation once and says what came back.
pub async fn first_look(target: &Arc<Target>, operations: &[Operation]) -> Result<(), String> {
    let mut reader = Reader::open(target).await?;
    for operation in operations {
        let series = format!("look-{operation}");
        let mut requests = Requests::new(target, Load::Operation(*operation), &series);
        let answer = reader.connection.send(requests.next()).await.map_err(|fault| fault.to_string())?;
        let (name, status, size) = (operation.name, answer.status, answer.body.len());
        if status != operation.success() {
            return Err(format!("{name} was answered with {status}: {}", answer.text()));
        }
        let body: Value = serde_json::from_slice(answer.body)
            .map_err(|fault| format!("the answer to {name} is not JSON: {fault}"))?;
        let rows = body["data"].as_array().map_or(1, Vec::len);
        eprintln!("  {name}: {status}, {rows} rows, {size} bytes");
        if rows == 0 {
            return Err(format!("{name} found nothing, so there is nothing to measure"));
        }
    }
    Ok(())
}

/// One connection for answers that are read as JSON.
pub struct Reader<'a> {
    connection: Connection,
    target: &'a Target,
}

impl<'a> Reader<'a> {
    pub async fn open(target: &'a Target) -> Result<Self, String> {
        let connection = Connection::open(&target.authority)
            .await
            .map_err(|fault| format!("cannot reach {}: {fault}", target.authority))?;
        Ok(Self { connection, target })
    }

    pub async fn get(&mut self, path: &str) -> Result<Value, String> {
        let mut message = Vec::new();
        self.target.request("GET", path).render(&self.target.authority, &mut message);
        let answer = self.connection.send(&message).await.map_err(|fault| format!("{path}: {fault}"))?;
        if answer.status != 200 {
            return Err(format!("{path} was answered with {}: {}", answer.status, answer.text()));
        }
        serde_json::from_slice(answer.body).map_err(|fault| format!("{path}: not JSON: {fault}"))
    }

    pub async fn total(&mut self, resource: Resource) -> Result<u64, String> {
        let path = format!("{}?per_page=1", resource.path());
        let answer = self.get(&path).await?;
        answer["meta"]["total"].as_u64().ok_or_else(|| format!("{path} has no meta.total"))
    }

    /// Ids of the newest entries; an error when there are fewer than wanted.
    async fn ids(&mut self, resource: Resource, wanted: u64) -> Result<Vec<String>, String> {
        let (path, total) = (resource.path(), self.total(resource).await?);
        if total < wanted {
            return Err(format!("{path} should have {wanted} entries after filling, but says {total}"));
        }
        let mut ids = Vec::new();
        for page in 1..=wanted.div_ceil(PAGE) {
            let answer = self.get(&format!("{path}?per_page={PAGE}&page={page}")).await?;
            let rows = answer["data"].as_array().ok_or_else(|| format!("{path} has no data"))?;
            ids.extend(rows.iter().filter_map(|row| row["id"].as_str()).map(str::to_owned));
        }
        if (ids.len() as u64) < wanted {
            return Err(format!("{path} says {total} entries, but its pages show {}", ids.len()));
        }
        Ok(ids)
    }

    /// Ids of the phases of the account's first pipeline.
    async fn phases(&mut self) -> Result<Vec<String>, String> {
        let pipelines = self.get("/v1/pipelines").await?;
        let phases = pipelines["data"][0]["phases"].as_array().ok_or("the account has no pipeline")?;
        Ok(phases.iter().filter_map(|phase| phase["id"].as_str()).map(str::to_owned).collect())
    }
}
