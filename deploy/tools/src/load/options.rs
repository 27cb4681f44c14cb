//! The command line.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, value_parser};
use deploy_tools::Result;
use uuid::Uuid;

use crate::baseline::Baseline;
use crate::database::Database;
use crate::fill::DAYS;
use crate::measure::Span;
use crate::operations::Operation;
use crate::process::{Process, Watched};
use crate::record::Recorder;
use crate::report::{Facts, Report, Table, in_file};
use crate::requests::Target;

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
    /// How fast the change feed is read, and how soon it has a change
    Changes(Changes),
    /// What all processes take while many accounts do nothing
    Idle(Idle),
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
    /// A process to watch (repeatable); of the database cluster `postgres` and its first process
    #[arg(long = "process", value_name = "NAME=PID", value_parser = process)]
    processes: Vec<Process>,
    /// Something to be put into the report (repeatable)
    #[arg(long = "fact", value_name = "NAME=VALUE", value_parser = fact)]
    facts: Vec<(String, String)>,
    /// File for the report as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Document whose part gets the tables: `<!-- bench -->`, or the one with the name of the command
    #[arg(long, value_name = "FILE")]
    update_docs: Option<PathBuf>,
}

impl Setup {
    pub(crate) fn watched(&self) -> Watched {
        Watched(self.processes.clone())
    }

    /// The database, when it and the programs for it are known.
    pub(crate) fn database(&self) -> Result<Option<Database>> {
        let known = self.pg_programs.as_ref().zip(self.superuser_url.as_ref());
        known.map(|(programs, url)| Database::new(programs, url)).transpose()
    }

    /// What records, when the server's log is known too.
    pub(crate) fn baseline(&self) -> Result<Option<Baseline>> {
        let Some((database, log)) = self.database()?.zip(self.server_log.clone()) else { return Ok(None) };
        std::fs::create_dir_all(&self.work).map_err(in_file(&self.work))?;
        Ok(Some(Baseline { recorder: Recorder { database, log }, work: self.work.clone() }))
    }

    pub(crate) fn publish(&self, part: &'static str, settings: String, tables: Vec<Table>) -> Result<()> {
        let report = Report { part, settings, facts: Facts::new(self.facts.clone()), tables };
        report.publish(self.out.as_deref(), self.update_docs.as_deref())
    }
}

/// How long and how often each side is measured.
#[derive(Args, Debug)]
pub(crate) struct Rounds {
    /// Rounds, whose medians are reported
    #[arg(long = "rounds", default_value_t = 3, value_parser = value_parser!(u32).range(1..=100))]
    pub count: u32,
    /// Measured seconds of each round and side
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Seconds before them that do not count
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u64).range(1..=60))]
    warm_up: u64,
}

impl Rounds {
    pub(crate) fn span(&self, connections: u32) -> Span {
        let [warm_up, measured] = [self.warm_up, self.seconds].map(Duration::from_secs);
        Span { connections, warm_up, measured }
    }
}

impl fmt::Display for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "medians of {} rounds of {} s", self.count, self.seconds)
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
    only: Vec<String>,
    /// Numbers of connections; final invoices are made with 4 at most
    #[arg(long, value_delimiter = ',', default_value = "1,32", value_parser = value_parser!(u32).range(1..=512))]
    pub connections: Vec<u32>,
    #[command(flatten)]
    pub rounds: Rounds,
    /// Clients, invoices, deals, tasks and tickets that the account is filled up to, of each
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u64).range(100..=10_000_000))]
    pub records: u64,
    /// File of further accounts, each a line with its id and a key, for what is measured over many
    #[arg(long, value_name = "FILE")]
    account_keys: Option<PathBuf>,
}

impl Compare {
    /// All further accounts as one target.
    pub(crate) fn many_accounts(&self, authority: &str) -> Result<Option<Target>> {
        let Some(file) = &self.account_keys else { return Ok(None) };
        let text = std::fs::read_to_string(file).map_err(in_file(file))?;
        Target::of_accounts(authority, &text).map(Some)
    }

    /// In the order of measuring, whatever the order on the command line.
    pub(crate) fn choose<'a>(&self, all: &'a [Operation]) -> Result<Vec<&'a Operation>> {
        if let Some(unknown) = self.only.iter().find(|name| all.iter().all(|each| each.name != **name)) {
            let names: Vec<_> = all.iter().map(|each| each.name.as_str()).collect();
            return Err(format!("--only {unknown} must be one of: {}", names.join(", ")).into());
        }
        Ok(all.iter().filter(|each| self.only.is_empty() || self.only.contains(&each.name)).collect())
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
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u64).range(5_000..=10_000_000))]
    pub small: u64,
    /// Invoices of the large account
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u64).range(5_000..=100_000_000))]
    pub large: u64,
    /// Days on which the invoices were made; 1: all on the same one
    #[arg(long, default_value_t = DAYS, value_parser = value_parser!(u32).range(1..=10_000))]
    pub days: u32,
    /// How many times as much as in the small account a list may take in the large one
    #[arg(long, default_value_t = 1.5)]
    pub limit: f64,
    #[command(flatten)]
    pub rounds: Rounds,
    /// Connections
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=512))]
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
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u32).range(1..=10_000))]
    pub rate: u32,
    /// Seconds of it
    #[arg(long, default_value_t = 30, value_parser = value_parser!(u32).range(1..=3_600))]
    pub seconds: u32,
    /// Clients made as fast as possible
    #[arg(long, default_value_t = 5_000, value_parser = value_parser!(u32).range(1..=10_000))]
    pub burst: u32,
    /// Connections
    #[arg(long, default_value_t = 32, value_parser = value_parser!(u32).range(1..=512))]
    pub connections: u32,
}

#[derive(Args, Debug)]
pub(crate) struct Changes {
    #[command(flatten)]
    pub setup: Setup,
    /// API key with the scopes of clients
    #[arg(long, env = "API_KEY", hide_env_values = true)]
    pub key: String,
    /// Gateway that the waiting reader uses; the same one without it
    #[arg(long, value_name = "URL")]
    pub reader_url: Option<String>,
    /// Processes of each program
    #[arg(long, default_value_t = 1)]
    pub replicas: u32,
    /// Gateway of a copy with two processes of each program
    #[arg(long, value_name = "URL", requires = "second_reader_url", requires = "second_key")]
    pub second_url: Option<String>,
    /// The other gateway of it, which the waiting reader uses
    #[arg(long, value_name = "URL")]
    pub second_reader_url: Option<String>,
    /// API key of an account of it
    #[arg(long, env = "SECOND_KEY", hide_env_values = true)]
    pub second_key: Option<String>,
    /// Clients that the account is filled up to: a change each
    #[arg(long, default_value_t = 20_000, value_parser = value_parser!(u64).range(500..=1_000_000))]
    pub records: u64,
    /// How many times everything is read; the median is reported
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Clients made a second while a reader waits
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u32).range(1..=10_000))]
    pub rate: u32,
    /// Seconds of it
    #[arg(long, default_value_t = 30, value_parser = value_parser!(u32).range(1..=3_600))]
    pub seconds: u32,
    /// Connections that make them
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u32).range(1..=512))]
    pub connections: u32,
    /// Changes a second that a reader has to read at least
    #[arg(long, default_value_t = 5_000.0)]
    pub limit_rate: f64,
    /// Milliseconds after which a waiting reader has to have 99 % of the changes
    #[arg(long, default_value_t = 50.0)]
    pub limit_ms: f64,
}

#[derive(Args, Debug)]
pub(crate) struct Idle {
    #[command(flatten)]
    pub setup: Setup,
    /// Accounts that do nothing
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub accounts: u32,
    /// Measured seconds; most workers look at all accounts once in ten minutes
    #[arg(long, default_value_t = 600, value_parser = value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// How much of one core everything together may take, in percent
    #[arg(long, default_value_t = 3.0)]
    pub limit: f64,
}

fn fact(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    let (name, value) = parts.ok_or_else(|| format!("`{text}` must have the form NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn process(text: &str) -> Result<Process, String> {
    let (name, value) = fact(text)?;
    let pid = value.parse().map_err(|_| format!("`{value}` is not a process number"))?;
    Ok(Process { name, pid })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::Catalogue;

    fn parse(arguments: &str) -> Result<Compare, clap::Error> {
        let command = format!("load compare --key ba_x {arguments}");
        match Command::try_parse_from(command.split_whitespace())? {
            Command::Compare(options) => Ok(options),
            other => panic!("compare was asked for: {other:?}"),
        }
    }

    #[test]
    fn a_choice_is_measured_in_the_fixed_order() {
        let all = Catalogue::read().unwrap().operations;
        let choose = |arguments: &str| parse(arguments).unwrap().choose(&all);
        assert_eq!(choose("").unwrap().len(), all.len());
        let chosen = choose("--only create,list25,get").unwrap();
        let names: Vec<_> = chosen.iter().map(|operation| operation.name.as_str()).collect();
        assert_eq!(names, ["get", "list25", "create"]);
        assert!(choose("--only delete").unwrap_err().to_string().contains("invoice-open"));
        for wrong in ["--connections 0", "--rounds 0", "--process x", "--process =1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
