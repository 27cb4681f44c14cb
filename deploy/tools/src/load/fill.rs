//! The data that is measured on: the account is filled up to the number of records that is asked for, over REST, except
//! for invoices, which the database makes itself, since a million of them over REST would take hours.

use std::time::Instant;

use deploy_tools::Result;
use serde_json::Value;

use crate::clients::{self, Answered, Client, Schedule};
use crate::database::Database;
use crate::operations::{CLIENT, Catalogue, NOT_SEARCHED, Operation, SEARCHED};
use crate::requests::{Load, Target};

const CONNECTIONS: u32 = 16;
/// How often a line of progress is printed.
const PROGRESS: u64 = 2_000;
const PAGE: u64 = 100;
/// One in so many clients has the word that the search looks for.
const SEARCHED_EVERY: u64 = 1_500;
/// How many of the invoices have it, however many there are.
pub(crate) const SEARCHED_INVOICES: u64 = 7;
/// How many of them were changed recently, however many there are.
pub(crate) const CHANGED_INVOICES: u64 = 50;
/// Invoices of one transaction.
const CHUNK: u64 = 20_000;
/// Over how many days they are spread, unless a growth says otherwise.
pub(crate) const DAYS: u32 = 1_000;
const INVOICES: &str = include_str!("invoices.sql");

/// Brings the account to so many records over REST; the target gets to know as many of the newest.
pub(crate) async fn over_rest(
    target: &mut Target,
    catalogue: &Catalogue,
    resource: &str,
    count: u64,
) -> Result<()> {
    let load = catalogue.resource(resource).create();
    if resource == CLIENT {
        let searched = Load { body: load.body.replace(NOT_SEARCHED, SEARCHED), ..load.clone() };
        create(target, &searched, count.div_ceil(SEARCHED_EVERY)).await?;
    }
    create(target, &load, count).await?;
    read_ids(target, resource, &load.path, count).await
}

async fn create(target: &Target, load: &Load, count: u64) -> Result<()> {
    let present = total(target, &load.path).await?;
    if present >= count {
        return Ok(());
    }
    eprintln!("Filling the account with {} entries of {}", count - present, load.path);
    let schedule = Schedule::Each { numbers: present..count, rate: None };
    let report = |answered: Answered| {
        if answered.number > 0 && answered.number.is_multiple_of(PROGRESS) {
            eprintln!("  {} of {count}", answered.number);
        }
    };
    clients::run(target, load, CONNECTIONS, &schedule, report).await
}

/// The same for invoices, by SQL. `clients` has the ids that they are spread over, `days` how many days, of which the last is
/// yesterday. The tables are left as after hours of
/// running.
pub(crate) async fn invoices(
    target: &Target,
    count: u64,
    database: &Database,
    account: &str,
    clients: &[String],
    days: u32,
) -> Result<()> {
    let new = count.saturating_sub(total(target, "/v1/invoices").await?);
    if new == 0 {
        return Ok(());
    }
    eprintln!("Filling an account with {new} invoices of 3 rows");
    let used = format!(
        "select coalesce(max(value), 0) from counter where account_id = '{account}' and name like 'invoice/%'"
    );
    let used = database.number("billing", &used).await?;
    let clients = format!("{{{}}}", clients.join(","));
    let searched_every = (new / SEARCHED_INVOICES).max(1);
    let changed_every = (new / CHANGED_INVOICES).max(1);
    let begin = Instant::now();
    for done in (0..new).step_by(usize::try_from(CHUNK).unwrap_or(usize::MAX)) {
        let last = (done + CHUNK).min(new);
        let script = format!(
            "\\set account {account}\n\\set clients {clients}\n\\set count {new}\n\\set from {}\n\\set to {last}\n\
             \\set used {used}\n\\set days {days}\n\\set searched {SEARCHED}\n\
             \\set searched_every {searched_every}\n\\set changed_every {changed_every}\n{INVOICES}",
            done + 1
        );
        database.run("billing", &script).await?;
        eprintln!("  {last} of {new} invoices after {} s", begin.elapsed().as_secs());
    }
    eprintln!("  vacuum analyze");
    let tables =
        ["document", "document_row", "total"].map(|table| format!("vacuum analyze billing.{table};"));
    let settings = "set statement_timeout = 0; set maintenance_work_mem = '512MB';";
    database.run("billing", &format!("{settings} {}", tables.join(" "))).await.map(drop)
}

async fn total(target: &Target, path: &str) -> Result<u64> {
    let path = format!("{path}?per_page=1");
    let answer = clients::get(target, &path).await?;
    answer["meta"]["total"].as_u64().ok_or_else(|| format!("{path} has no meta.total").into())
}

/// Ids of the newest records; an error when there are fewer.
pub(crate) async fn read_ids(target: &mut Target, resource: &str, path: &str, count: u64) -> Result<()> {
    let mut ids = Vec::new();
    for page in 1..=count.div_ceil(PAGE) {
        ids.extend(ids_of(
            &clients::get(target, &format!("{path}?per_page={PAGE}&page={page}")).await?["data"],
        ));
    }
    if (ids.len() as u64) < count {
        return Err(
            format!("{path} should have {count} entries after filling, but shows {}", ids.len()).into()
        );
    }
    target.ids.insert(resource.to_owned(), ids);
    Ok(())
}

/// Of the phases of the account's first pipeline, which deals are moved to.
pub(crate) async fn read_phases(target: &mut Target) -> Result<()> {
    let pipelines = clients::get(target, "/v1/pipelines").await?;
    target.ids.insert("phase".to_owned(), ids_of(&pipelines["data"][0]["phases"]));
    Ok(())
}

fn ids_of(rows: &Value) -> Vec<String> {
    let rows = rows.as_array().into_iter().flatten();
    rows.filter_map(|row| row["id"].as_str()).map(str::to_owned).collect()
}

/// Sends an operation once and says what came back, so that a wrong answer shows before anything is measured.
pub(crate) async fn first_look(target: &Target, catalogue: &Catalogue, operation: &Operation) -> Result<()> {
    let load = operation.load(catalogue.resource(&operation.resource));
    let answer = Client::open(target, &load).await?.send_for_json().await?;
    let rows = answer["data"].as_array().map_or(1, Vec::len);
    eprintln!("  {}: {rows} rows", operation.name);
    if rows == 0 {
        return Err(format!("{} found nothing, so there is nothing to measure", operation.name).into());
    }
    Ok(())
}
