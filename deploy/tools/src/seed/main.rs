//! Fills an account with sample data, as an integration would: over the public API. Only the seller on the documents,
//! hours and files are managed over gRPC.
//!
//! Every request carries an idempotency key made from its entry, and entries have external ids, so that a second run
//! makes nothing twice.

mod api;
mod mesh;
mod relations;
mod sales;
mod seller;
mod work;

use std::process::ExitCode;

use chassis::Clock;
use chrono::NaiveDate;
use clap::Parser;
use uuid::Uuid;

use crate::api::Api;
use crate::mesh::Caller;
use crate::seller::Desk;

/// Fill an account with sample clients, suppliers, products, invoices, quotes, workorders, projects, hours, tasks, notes
/// and files.
///
/// What is there already stays as it is.
#[derive(Parser)]
#[command(name = "seed")]
struct Options {
    /// Address of the gateway
    #[arg(long, env = "BASE_URL", default_value = "http://127.0.0.1:7700")]
    base_url: String,
    /// API key with all scopes
    #[arg(long, env = "API_KEY", hide_env_values = true)]
    key: String,
    /// Address of billing's gRPC, to introduce the seller
    #[arg(long, value_name = "URL", requires = "account")]
    billing: Option<String>,
    /// Address of work's gRPC, for projects and what goes with them
    #[arg(long, value_name = "URL", requires = "account")]
    work: Option<String>,
    /// Id of the account
    #[arg(long, value_name = "ID")]
    account: Option<Uuid>,
    /// Signs the context tokens of the mesh
    #[arg(long, env = "CONTEXT_SECRET", hide_env_values = true, default_value = "")]
    context_secret: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Options::parse()).await {
        Ok(()) => {
            println!("Sample data is in place.");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("seed: {fault}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<(), String> {
    let mut api = Api::connect(&options.base_url, &options.key).await?;
    relations::add(&mut api).await?;
    let today = Clock::system().today(chrono_tz::Europe::Amsterdam);
    add_sales(options, &mut api, today).await?;
    if let (Some(url), Some(account)) = (&options.work, options.account) {
        let channel = mesh::connect("work", url).await?;
        let desk = work::Desk { channel, caller: Caller::new(&options.context_secret, account) };
        work::data()?.add(&mut api, &desk, today).await?;
    }
    Ok(())
}

async fn add_sales(options: &Options, api: &mut Api, today: NaiveDate) -> Result<(), String> {
    let sales = sales::data()?;
    if sales.is_there(api).await? {
        return Ok(());
    }
    // Before the documents: a final one keeps its seller as it was.
    if let (Some(url), Some(account)) = (&options.billing, options.account) {
        let billing = mesh::connect("billing", url).await?;
        let mut desk = Desk::new(billing, Caller::new(&options.context_secret, account));
        desk.introduce(sales.identity()).await?;
    }
    sales.add(api, today).await
}
