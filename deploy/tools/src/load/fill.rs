//! The data that is measured on: the account is filled up to the number of entries that is asked for, over REST, except
//! for invoices, which the database makes; their ids are read back. Also a first look at each operation, so that a wrong
//! answer shows before anything is measured.

use std::cell::Cell;

use deploy_tools::http::Connection;
use futures::future::try_join_all;
use serde_json::Value;

use crate::database::Database;
use crate::invoices::{self, NewInvoices};
use crate::operations::{Operation, Resource};
use crate::requests::{Load, Requests, Target};

const CONNECTIONS: u64 = 16;
/// How often a line of progress is printed.
const PROGRESS: u64 = 2_000;
const PAGE: u64 = 100;
/// Invoices are spread over so many clients.
const CLIENTS_IN_USE: usize = 1_000;

/// Brings the account to so many entries over REST; the target gets to know as many of the newest.
pub(crate) async fn over_rest(target: &mut Target, resource: Resource, count: u64) -> Result<(), String> {
    let present = Reader::open(target).await?.total(resource).await?;
    if present < count {
        eprintln!("Filling the account with {} entries of {}", count - present, resource.path());
        let next = Cell::new(present);
        try_join_all((0..CONNECTIONS).map(|_| create_some(target, resource, &next, count))).await?;
    }
    read_back(target, resource, count).await
}

/// The same for invoices, by SQL.
pub(crate) async fn invoices(
    target: &mut Target,
    count: u64,
    database: &Database,
    account: &str,
) -> Result<(), String> {
    let present = Reader::open(target).await?.total(Resource::Invoice).await?;
    if present < count {
        let clients = target.ids(Resource::Client);
        let clients = &clients[..clients.len().min(CLIENTS_IN_USE)];
        invoices::fill(database, &NewInvoices { account, clients, count: count - present }).await?;
    }
    read_back(target, Resource::Invoice, count).await
}

/// One connection: makes the next entry that nobody has made yet, until there is none.
async fn create_some(target: &Target, resource: Resource, next: &Cell<u64>, end: u64) -> Result<(), String> {
    let mut connection = Connection::open(&target.authority).await.map_err(|fault| fault.to_string())?;
    let mut requests = Requests::new(target, Load::Fill(resource), "fill");
    loop {
        requests.number = next.replace(next.get() + 1);
        let done = requests.number + 1;
        if done > end {
            return Ok(());
        }
        let answer = connection.send(requests.next()).await.map_err(|fault| fault.to_string())?;
        if answer.status != 201 {
            return Err(format!("a create was answered with {}: {}", answer.status, answer.text()));
        }
        if done.is_multiple_of(PROGRESS) {
            eprintln!("  {done} of {end}");
        }
    }
}

async fn read_back(target: &mut Target, resource: Resource, count: u64) -> Result<(), String> {
    // A new connection: the gateway closes one that is silent for as long as the filling may take.
    let mut reader = Reader::open(target).await?;
    let ids = reader.ids(resource, count).await?;
    let phases = if resource == Resource::Deal { Some(reader.phases().await?) } else { None };
    *target.ids_mut(resource) = ids;
    target.phases = phases.unwrap_or_else(|| std::mem::take(&mut target.phases));
    Ok(())
}

/// Sends each operation once and says what came back.
pub(crate) async fn first_look(target: &Target, operations: &[Operation]) -> Result<(), String> {
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
pub(crate) struct Reader<'a> {
    connection: Connection,
    target: &'a Target,
}

impl<'a> Reader<'a> {
    pub(crate) async fn open(target: &'a Target) -> Result<Self, String> {
        let connection = Connection::open(&target.authority)
            .await
            .map_err(|fault| format!("cannot reach {}: {fault}", target.authority))?;
        Ok(Self { connection, target })
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Value, String> {
        let mut message = Vec::new();
        self.target.request("GET", path).render(&self.target.authority, &mut message);
        let answer = self.connection.send(&message).await.map_err(|fault| format!("{path}: {fault}"))?;
        if answer.status != 200 {
            return Err(format!("{path} was answered with {}: {}", answer.status, answer.text()));
        }
        serde_json::from_slice(answer.body).map_err(|fault| format!("{path}: not JSON: {fault}"))
    }

    pub(crate) async fn total(&mut self, resource: Resource) -> Result<u64, String> {
        let path = format!("{}?per_page=1", resource.path());
        let answer = self.get(&path).await?;
        answer["meta"]["total"].as_u64().ok_or_else(|| format!("{path} has no meta.total"))
    }

    /// Ids of the newest entries; an error when there are fewer.
    async fn ids(&mut self, resource: Resource, count: u64) -> Result<Vec<String>, String> {
        let path = resource.path();
        let mut ids = Vec::new();
        for page in 1..=count.div_ceil(PAGE) {
            let answer = self.get(&format!("{path}?per_page={PAGE}&page={page}")).await?;
            let rows = answer["data"].as_array().ok_or_else(|| format!("{path} has no data"))?;
            ids.extend(rows.iter().filter_map(|row| row["id"].as_str()).map(str::to_owned));
        }
        if (ids.len() as u64) < count {
            return Err(format!("{path} should have {count} entries after filling, but shows {}", ids.len()));
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
