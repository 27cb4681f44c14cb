//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser};
use uuid::Uuid;

use crate::baseline::Baseline;
use crate::database::Database;
use crate::measure::Span;
use crate::operations::{Operation, Resource};
use crate::process::Process;
use crate::record::Recorder;

/// Measure the API.
///
/// `deploy/bench` starts what is needed and calls this.
#[derive(Debug, Parser)]
#[command(name = "load")]
pub(crate) enum Command {
    /// Each operation against pgbench with the service's own statements
    Compare(Compare),
    /// Lists of a small account against those of a large one
    Growth(Growth),
    /// From a change to the first effect of the flow that waits for it
    Events(Events),
}

/// Where everything is.
#[derive(Args, Debug)]
pub(crate) struct Setup {
    /// Address of the gateway
    #[arg(long, env = "BASE_URL", default_value = "http://127.0.0.1:7700")]
    pub base_url: String,
    /// Folder of psql and pgbench; without it only our side is measured
    #[arg(long, value_name = "DIR")]
    pg_programs: Option<PathBuf>,
    /// A superuser's address of the services' database
    #[arg(long, env = "SUPERUSER_URL", hide_env_values = true, value_name = "URL")]
    superuser_url: Option<String>,
    /// Log of the database server, from which statements are recorded; without it there is no pgbench
    #[arg(long, value_name = "FILE")]
    server_log: Option<PathBuf>,
    /// Folder for the recorded scripts
    #[arg(long, value_name = "DIR", default_value = ".local/bench")]
    work: PathBuf,
    /// A process to watch (repeatable)
    #[arg(long = "process", value_name = "NAME=PID", value_parser = process)]
    pub processes: Vec<Process>,
    /// The first process of the database cluster
    #[arg(long, value_name = "PID")]
    pub postmaster: Option<u32>,
    /// Something to be put into the report (repeatable)
    #[arg(long = "fact", value_name = "NAME=VALUE", value_parser = fact)]
    pub facts: Vec<Fact>,
    /// File for the report as JSON
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Document whose `<!-- bench -->`, `<!-- growth -->` or `<!-- events -->` part gets the tables
    #[arg(long, value_name = "FILE")]
    pub readme: Option<PathBuf>,
}

impl Setup {
    /// The database, when it and the programs for it are known.
    pub(crate) fn database(&self) -> Result<Option<Database>, String> {
        let known = self.pg_programs.as_ref().zip(self.superuser_url.as_ref());
        known.map(|(programs, url)| Database::new(programs, url)).transpose()
    }

    /// What records, when the server's log is known too.
    pub(crate) fn baseline(&self) -> Result<Option<Baseline>, String> {
        let Some((database, log)) = self.database()?.zip(self.server_log.clone()) else { return Ok(None) };
        let work = self.work.clone();
        std::fs::create_dir_all(&work).map_err(|fault| format!("{}: {fault}", work.display()))?;
        Ok(Some(Baseline { recorder: Recorder { database, log }, work }))
    }
}

/// Something that the caller knows about the run.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub name: String,
    pub value: String,
}

/// How long and how often each side is measured.
#[derive(Args, Debug)]
pub(crate) struct Rounds {
    /// Rounds, whose medians are reported
    #[arg(long = "rounds", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub count: u32,
    /// Measured seconds of each round and side
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// Seconds before them that do not count
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub warm_up: u64,
}

impl Rounds {
    pub(crate) fn span(&self, connections: u32) -> Span {
        let (warm_up, measured) = (Duration::from_secs(self.warm_up), Duration::from_secs(self.seconds));
        Span { connections, warm_up, measured }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub setup: Setup,
    /// API key with the scopes of clients, invoices, deals, tasks and tickets
    #[arg(long, env = "API_KEY", hide_env_values = true)]
    pub key: String,
    /// What to measure
    #[arg(long, value_delimiter = ',', value_name = "OPERATIONS")]
    only: Vec<Operation>,
    /// Numbers of connections; final invoices are made with 4 at most
    #[arg(long, value_delimiter = ',', default_value = "1,32", value_parser = clap::value_parser!(u32).range(1..=512))]
    pub connections: Vec<u32>,
    #[command(flatten)]
    pub rounds: Rounds,
    /// Clients that the account is filled up to
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub clients: u64,
    /// Invoices that the account is filled up to
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    pub invoices: u64,
    /// Deals that the account is filled up to
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    pub deals: u64,
    /// Tasks that the account is filled up to
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    pub tasks: u64,
    /// Tickets that the account is filled up to
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    pub tickets: u64,
}

impl Compare {
    pub(crate) fn operations(&self) -> Vec<Operation> {
        // In the order of measuring, whatever the order on the command line.
        Operation::ALL.into_iter().filter(|each| self.only.is_empty() || self.only.contains(each)).collect()
    }

    /// How many of them the account is filled up to.
    pub(crate) fn count(&self, resource: Resource) -> u64 {
        match resource {
            Resource::Client => self.clients,
            Resource::Invoice => self.invoices,
            Resource::Deal => self.deals,
            Resource::Task => self.tasks,
            Resource::Ticket => self.tickets,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Growth {
    #[command(flatten)]
    pub setup: Setup,
    /// API key of the small account
    #[arg(long, env = "SMALL_KEY", hide_env_values = true)]
    pub small_key: String,
    /// Its id
    #[arg(long, value_name = "ID")]
    pub small_account: String,
    /// API key of the large account
    #[arg(long, env = "LARGE_KEY", hide_env_values = true)]
    pub large_key: String,
    /// Its id
    #[arg(long, value_name = "ID")]
    pub large_account: String,
    /// Invoices of the small account
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(5_000..=10_000_000))]
    pub small: u64,
    /// Invoices of the large account
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(5_000..=100_000_000))]
    pub large: u64,
    /// How many times as much as in the small account a list may take in the large one
    #[arg(long, default_value_t = 1.5)]
    pub limit: f64,
    #[command(flatten)]
    pub rounds: Rounds,
    /// Connections
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub connections: u32,
}

#[derive(Args, Debug)]
pub(crate) struct Events {
    #[command(flatten)]
    pub setup: Setup,
    /// API key with the scopes of clients
    #[arg(long, env = "API_KEY", hide_env_values = true)]
    pub key: String,
    /// Id of its account
    #[arg(long, value_name = "ID")]
    pub account: Uuid,
    /// Where automation's gRPC is, to switch the flow on
    #[arg(long, env = "AUTOMATION_GRPC", value_name = "HOST:PORT")]
    pub automation: String,
    /// Signs the context tokens of the mesh
    #[arg(long, env = "CONTEXT_SECRET", hide_env_values = true, default_value = "")]
    pub context_secret: String,
    /// Clients made a second while nothing is in a hurry
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rate: u32,
    /// Seconds of it
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub seconds: u32,
    /// Clients made as fast as possible
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub burst: u32,
    /// Connections
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub connections: u32,
}

fn fact(text: &str) -> Result<Fact, String> {
    let parts = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    let (name, value) = parts.ok_or_else(|| format!("`{text}` must have the form NAME=VALUE"))?;
    Ok(Fact { name: name.to_owned(), value: value.to_owned() })
}

fn process(text: &str) -> Result<Process, String> {
    let Fact { name, value } = fact(text)?;
    let pid = value.parse().map_err(|_| format!("`{value}` is not a process number"))?;
    Ok(Process { name, pid })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<Compare, clap::Error> {
        let command = format!("load compare --key ba_x {arguments}");
        match Command::try_parse_from(command.split_whitespace())? {
            Command::Compare(options) => Ok(options),
            Command::Growth(_) | Command::Events(_) => panic!("compare was asked for"),
        }
    }

    #[test]
    fn a_choice_is_measured_in_the_fixed_order() {
        assert_eq!(parse("").unwrap().operations(), Operation::ALL);
        let options = parse("--only create,list25,get --connections 4").unwrap();
        let names: Vec<_> = options.operations().iter().map(|operation| operation.name).collect();
        assert_eq!(names, ["get", "list25", "create"]);
        for wrong in ["--only delete", "--connections 0", "--rounds 0"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn processes_are_named_numbers() {
        let options = parse("--process gateway=12 --process crm=7").unwrap();
        assert_eq!(options.setup.processes[1], Process { name: "crm".to_owned(), pid: 7 });
        for wrong in ["gateway", "gateway=twelve", "=12"] {
            assert!(parse(&format!("--process {wrong}")).is_err(), "{wrong}");
        }
    }
}
