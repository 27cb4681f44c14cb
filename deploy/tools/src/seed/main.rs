//! Fills an account with sample data, as an integration would: over the public API. Only the seller on the documents,
//! the collection of an invoice, the pipelines, hours, files and flows go over gRPC, and what clients write comes in there too.
//!
//! Every request carries an idempotency key made from its entry, and entries have external ids, so that a second run
//! makes nothing twice.

mod api;
mod automation;
mod deals;
mod debit;
mod relations;
mod sales;
mod seller;
mod subscriptions;
mod support;
mod work;

use std::process::ExitCode;

use chassis_base::{Clock, Timezone};
use chrono::NaiveDate;
use clap::Parser;
use deploy_tools::mesh::MeshCaller;
use uuid::Uuid;

use crate::api::Api;
use crate::seller::BillingService;

/// Fill an account with sample clients, suppliers, products, deals, invoices, quotes, workorders, subscriptions, a
/// mandate, projects, hours, tasks, notes, files, tickets, and a flow with runs.
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
    /// Address of crm's gRPC, to add a pipeline
    #[arg(long, value_name = "URL", requires = "account")]
    crm: Option<String>,
    /// Address of work's gRPC, for projects and what goes with them
    #[arg(long, value_name = "URL", requires = "account")]
    work: Option<String>,
    /// Address of support's gRPC, to let clients write
    #[arg(long, value_name = "URL", requires = "account")]
    support: Option<String>,
    /// Address of automation's gRPC, to add a flow
    #[arg(long, value_name = "URL", requires = "account")]
    automation: Option<String>,
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
    let mesh = options.account.map(|account| MeshCaller::new(&options.context_secret, account, "seed"));
    let today = Clock::system().today(Timezone::AMSTERDAM);
    relations::add(&mut api).await?;
    let deals = deals::data()?;
    if let (Some(crm), Some(mesh)) = (&options.crm, &mesh) {
        deals.add_pipeline(&mut api, mesh, crm).await?;
    }
    deals.add(&mut api, today).await?;
    add_sales(options, mesh.as_ref(), &mut api, today).await?;
    if let (Some(work), Some(mesh)) = (&options.work, &mesh) {
        let service = work::WorkService::open(work, mesh).await?;
        work::data()?.add(&mut api, &service, today).await?;
    }
    if let (Some(support), Some(mesh)) = (&options.support, &mesh) {
        let mut clients = support::Clients::open(support, mesh).await?;
        support::add(&mut api, &mut clients).await?;
    }
    if let (Some(automation), Some(mesh)) = (&options.automation, &mesh) {
        automation::add(&mut api, mesh, automation).await?;
    }
    Ok(())
}

async fn add_sales(
    options: &Options,
    mesh: Option<&MeshCaller>,
    api: &mut Api,
    today: NaiveDate,
) -> Result<(), String> {
    let sales = sales::data()?;
    let mut service = match (&options.billing, mesh) {
        (Some(billing), Some(mesh)) => Some(BillingService::open(billing, mesh).await?),
        _ => None,
    };
    if !sales.is_there(api).await? {
        // Before the documents: a final one keeps its seller as it was.
        if let Some(service) = &mut service {
            service.introduce(sales.identity()).await?;
        }
        sales.add(api, today).await?;
    }
    subscriptions::add(api, today).await?;
    match &mut service {
        Some(service) => debit::add(api, service).await,
        None => Ok(()),
    }
}
