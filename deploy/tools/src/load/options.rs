//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser};
use uuid::Uuid;

use crate::database::{Database, Databases};
use crate::operations::{Operation, Resource};

/// Measure the API.
///
/// `deploy/bench` starts what is needed and calls this.
#[derive(Debug, Parser)]
#[command(name = "load")]
pub enum Command {
    /// Each operation against pgbench with the same statements
    Compare(Compare),
    /// Lists of a small account against those of a large one
    Growth(Growth),
    /// From a change to the first effect of the flow that waits for it
    Events(Events),
}

/// Where everything is.
#[derive(Args, Debug)]
pub struct Place {
    /// Address of the gateway
    #[arg(long, env = "BASE_URL", default_value = "http://127.0.0.1:7700")]
    pub base_url: String,
    /// Folder of psql and pgbench; without it only our side is measured
    #[arg(long, value_name = "DIR")]
    pub pg_programs: Option<PathBuf>,
    /// Database of relations
    #[arg(
        long,
        env = "RELATIONS_DATABASE_URL",
        hide_env_values = true,
        default_value = "",
        value_name = "URL"
    )]
    pub relations_database_url: String,
    /// Database of billing
    #[arg(
        long,
        env = "BILLING_DATABASE_URL",
        hide_env_values = true,
        default_value = "",
        value_name = "URL"
    )]
    pub billing_database_url: String,
    /// Database of crm
    #[arg(long, env = "CRM_DATABASE_URL", hide_env_values = true, default_value = "", value_name = "URL")]
    pub crm_database_url: String,
    /// Database of work
    #[arg(long, env = "WORK_DATABASE_URL", hide_env_values = true, default_value = "", value_name = "URL")]
    pub work_database_url: String,
    /// Database of support
    #[arg(
        long,
        env = "SUPPORT_DATABASE_URL",
        hide_env_values = true,
        default_value = "",
        value_name = "URL"
    )]
    pub support_database_url: String,
    /// Folder of the pgbench scripts
    #[arg(long, value_name = "DIR", default_value = "deploy/bench.d")]
    pub scripts: PathBuf,
    /// Folder for copies of scripts
    #[arg(long, value_name = "DIR", default_value = ".local/bench")]
    pub work: PathBuf,
    /// A process to watch (repeatable)
    #[arg(long = "process", value_name = "NAME=PID", value_parser = named_process)]
    pub processes: Vec<(String, u32)>,
    /// The first process of the database cluster
    #[arg(long, value_name = "PID")]
    pub postmaster: Option<u32>,
    /// Something to be noted in the report (repeatable)
    #[arg(long = "fact", value_name = "NAME=VALUE", value_parser = fact)]
    pub facts: Vec<(String, String)>,
    /// File for the report as JSON
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Document whose `<!-- bench -->`, `<!-- growth -->` or `<!-- events -->` part gets the tables
    #[arg(long, value_name = "FILE")]
    pub readme: Option<PathBuf>,
}

impl Place {
    /// The databases, when they and the programs for them are known.
    pub fn databases(&self) -> Result<Option<Databases>, String> {
        let Some(relations) = self.database(Resource::Client)? else { return Ok(None) };
        let mut others = Vec::new();
        for resource in Resource::ALL.into_iter().filter(|resource| *resource != Resource::Client) {
            others.extend(self.database(resource)?.map(|database| (resource, database)));
        }
        Ok(Some(Databases { relations, others }))
    }

    /// The database in which this is kept.
    pub fn database(&self, resource: Resource) -> Result<Option<Database>, String> {
        let url = match resource {
            Resource::Client => &self.relations_database_url,
            Resource::Invoice => &self.billing_database_url,
            Resource::Deal => &self.crm_database_url,
            Resource::Task => &self.work_database_url,
            Resource::Ticket => &self.support_database_url,
        };
        let programs = self.pg_programs.as_ref().filter(|_| !url.is_empty());
        programs.map(|programs| Database::new(programs, url, resource.service())).transpose()
    }
}

#[derive(Args, Debug)]
pub struct Compare {
    #[command(flatten)]
    pub place: Place,
    /// API key with the scopes of clients, invoices, deals, tasks and tickets
    #[arg(long, env = "API_KEY", hide_env_values = true)]
    pub key: String,
    /// What to measure
    #[arg(long, value_delimiter = ',', value_name = "OPERATIONS")]
    pub only: Vec<Operation>,
    /// Numbers of connections; final invoices are made with 4 at most
    #[arg(long, value_delimiter = ',', default_value = "1,32", value_parser = clap::value_parser!(u32).range(1..=512))]
    pub connections: Vec<u32>,
    /// Measured seconds of each round and side
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// Seconds before them that do not count
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub warm_up: u64,
    /// Rounds, whose medians are reported
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
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
    pub fn operations(&self) -> Vec<Operation> {
        // In the order of measuring, whatever the order on the command line.
        Operation::ALL.into_iter().filter(|each| self.only.is_empty() || self.only.contains(each)).collect()
    }

    /// How many of them the account is filled up to.
    pub fn wanted(&self, resource: Resource) -> u64 {
        match resource {
            Resource::Client => self.clients,
            Resource::Invoice => self.invoices,
            Resource::Deal => self.deals,
            Resource::Task => self.tasks,
            Resource::Ticket => self.tickets,
        }
    }

    /// How long the rounds take, without the filling.
    pub fn duration(&self) -> Duration {
        let sides = if self.place.pg_programs.is_some() { 2 } else { 1 };
        let parts = self.operations().len() as u64 * self.connections.len() as u64 * u64::from(self.rounds);
        // pgbench runs a second longer than it is read.
        Duration::from_secs(parts * (sides * (self.seconds + self.warm_up) + sides - 1))
    }
}

#[derive(Args, Debug)]
pub struct Growth {
    #[command(flatten)]
    pub place: Place,
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
    /// Measured seconds of each round and account
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// Seconds before them that do not count
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub warm_up: u64,
    /// Rounds, whose medians are reported
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Connections
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub connections: u32,
}

#[derive(Args, Debug)]
pub struct Events {
    #[command(flatten)]
    pub place: Place,
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
    /// Database of automation; without it the stages are unknown
    #[arg(
        long,
        env = "AUTOMATION_DATABASE_URL",
        hide_env_values = true,
        default_value = "",
        value_name = "URL"
    )]
    pub automation_database_url: String,
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

impl Events {
    /// Automation's database, when it and the programs for it are known.
    pub fn database(&self) -> Result<Option<Database>, String> {
        let url = &self.automation_database_url;
        let programs = self.place.pg_programs.as_ref().filter(|_| !url.is_empty());
        programs.map(|programs| Database::new(programs, url, "automation")).transpose()
    }
}

fn pair(text: &str) -> Result<(&str, &str), String> {
    text.split_once('=')
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or_else(|| format!("`{text}` must have the form NAME=VALUE"))
}

fn named_process(text: &str) -> Result<(String, u32), String> {
    let (name, pid) = pair(text)?;
    let pid = pid.parse().map_err(|_| format!("`{pid}` is not a process number"))?;
    Ok((name.to_owned(), pid))
}

fn fact(text: &str) -> Result<(String, String), String> {
    pair(text).map(|(name, value)| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<Compare, clap::Error> {
        let command =
            Command::try_parse_from(format!("load compare --key ba_x {arguments}").split_whitespace())?;
        match command {
            Command::Compare(options) => Ok(options),
            Command::Growth(_) | Command::Events(_) => panic!("compare was asked for"),
        }
    }

    #[test]
    fn without_options_everything_is_measured_at_1_and_32_connections() {
        let options = parse("").unwrap();
        assert_eq!(options.operations(), Operation::ALL);
        assert_eq!(options.connections, [1, 32]);
    }

    #[test]
    fn a_choice_is_measured_in_the_fixed_order() {
        let options = parse("--only create,list25,get --connections 4").unwrap();
        let names: Vec<_> = options.operations().iter().map(|operation| operation.name).collect();
        assert_eq!(names, ["get", "list25", "create"]);
        assert!(parse("--only delete").is_err());
        assert!(parse("--connections 0").is_err());
        assert!(parse("--rounds 0").is_err());
    }

    #[test]
    fn the_duration_counts_both_sides() {
        let options = parse("--only get --connections 1,32 --rounds 3 --seconds 5 --warm-up 2").unwrap();
        assert_eq!(options.duration().as_secs(), 42);
        let options =
            parse("--only get --connections 1 --rounds 1 --seconds 5 --warm-up 2 --pg-programs /x").unwrap();
        assert_eq!(options.duration().as_secs(), 15);
    }

    #[test]
    fn processes_are_named_numbers() {
        assert_eq!(
            parse("--process gateway=12 --process crm=7").unwrap().place.processes[1],
            ("crm".to_owned(), 7)
        );
        assert!(parse("--process gateway").is_err());
        assert!(parse("--process gateway=twelve").is_err());
        assert!(parse("--process =12").is_err());
    }
}
