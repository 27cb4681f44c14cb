//! Fills an account with sample data, as an integration would: over the public API. Only the seller on the documents is
//! managed over gRPC, and what clients write comes in there too.
//!
//! Every request carries an idempotency key made from its entry, and entries have external ids, so that a second run
//! makes nothing twice.

mod api;
mod relations;
mod sales;
mod seller;
mod support;

use std::process::ExitCode;

use chassis::Clock;
use clap::Parser;
use uuid::Uuid;

use crate::api::Api;
use crate::seller::Desk;

/// Fill an account with sample clients, suppliers, products, invoices, quotes, workorders and tickets.
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
    /// Address of support's gRPC, to let clients write
    #[arg(long, value_name = "URL", requires = "account")]
    support: Option<String>,
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
    if let (Some(support), Some(account)) = (&options.support, options.account) {
        let mut clients = support::Clients::open(support, &options.context_secret, account).await?;
        support::add(&mut api, &mut clients).await?;
    }
    let sales = sales::data()?;
    if sales.is_there(&mut api).await? {
        return Ok(());
    }
    // Before the documents: a final one keeps its seller as it was.
    if let (Some(billing), Some(account)) = (&options.billing, options.account) {
        let mut desk = Desk::open(billing, &options.context_secret, account).await?;
        desk.introduce(sales.identity()).await?;
    }
    sales.add(&mut api, Clock::system().today(chrono_tz::Europe::Amsterdam)).await
}
