//! The other side of the comparison: what each operation asks of the database, for pgbench.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::database::Databases;
use crate::measure::Span;
use crate::operations::{Action, Operation, Resource, SEARCHED};
use crate::pgbench::{self, Outcome, Plan, Scripts};
use crate::process::Watched;
use crate::requests::Target;
use crate::variables;

/// How many entries the copies of a get script ask for.
const GET_COPIES: usize = 32;

/// How many times, a quarter of a second apart, is looked whether all events have been delivered.
const EVENTS_WAIT: u32 = 240;

type Named = Vec<(String, String)>;

/// Everything that pgbench needs for a run.
#[derive(Debug)]
pub struct Baseline {
    databases: Databases,
    scripts: Scripts,
    account: String,
    clients: Vec<String>,
    invoices: Vec<String>,
    phases: Vec<String>,
    /// How many there are.
    deals: usize,
    tasks: usize,
    tickets: usize,
}

impl Baseline {
    pub fn new(
        databases: Databases,
        (folder, work): (&Path, &Path),
        account: String,
        target: &Target,
    ) -> Result<Self, String> {
        let some = |ids: &[String]| {
            let step = (ids.len() / GET_COPIES).max(1);
            ids.iter().step_by(step).take(GET_COPIES).cloned().collect()
        };
        Ok(Self {
            databases,
            scripts: Scripts::new(folder, work)?,
            account,
            clients: some(&target.clients),
            invoices: some(&target.invoices),
            phases: target.phases.clone(),
            deals: target.deals.len(),
            tasks: target.tasks.len(),
            tickets: target.tickets.len(),
        })
    }

    pub async fn server_version(&self) -> Result<String, String> {
        self.databases.relations.value("show server_version").await
    }

    /// As after hours of running: statistics are known, and the search index has no pending entries.
    pub async fn settle(&self) -> Result<(), String> {
        self.databases
            .relations
            .run("set statement_timeout = 0; vacuum analyze relations.relation; vacuum analyze relations.total;")
            .await
    }

    /// Waits until the events of what was created have been delivered, so that this is not part of the next round. Gives
    /// up after a while; returns how many are left.
    pub async fn drain_events(&self, resource: Resource) -> Result<u64, String> {
        let database = self.databases.get(resource)?;
        let waiting = format!(
            "select count(*) from outbox where account_id = '{}' and listener <> 'bench'",
            self.account
        );
        let mut left = 0;
        for _ in 0..EVENTS_WAIT {
            left = database.value(&waiting).await?.parse().map_err(|_| "psql gave no number".to_owned())?;
            if left == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        Ok(left)
    }

    /// Removes the events that pgbench wrote: nobody will come for them.
    pub async fn clean(&self, resource: Resource) -> Result<(), String> {
        let sql = format!("delete from outbox where account_id = '{}' and listener = 'bench'", self.account);
        self.databases.get(resource)?.run(&sql).await
    }

    pub async fn run(&self, operation: Operation, span: Span, watched: &Watched) -> Result<Outcome, String> {
        let database = self.databases.get(operation.resource)?;
        let mut named = self.constants(operation);
        let files = if operation.action == Action::Get {
            let (copies, ids) = self.copies_by_id(operation)?;
            named.extend(ids);
            copies
        } else {
            let limit = operation.page_size().to_string();
            vec![self.scripts.copy(&operation.script(), operation.name, &[(":limit", &limit)])?]
        };
        if operation.writes() {
            let moment = database
                .value("select floor(extract(epoch from now()) * 1000)::bigint, current_date")
                .await?;
            let moment = moment.split_once('|').ok_or("psql gave no time")?;
            let more = match operation.resource {
                Resource::Client => variables::client(moment),
                Resource::Invoice => {
                    let client = self.clients.first().map_or("", String::as_str);
                    variables::invoice(client, moment, operation.action == Action::CreateFinal)
                }
                Resource::Deal => variables::deal(self.deals, &self.phases),
                Resource::Task => variables::task(self.tasks),
                Resource::Ticket => variables::ticket(self.tickets, moment.0),
            };
            named.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        pgbench::run(database, &Plan { files, variables: named }, span, watched).await
    }

    fn constants(&self, operation: Operation) -> Named {
        let list = operation.resource.list();
        [
            ("account", self.account.as_str()),
            ("role", list),
            ("kind", list),
            ("list", list),
            ("all_days", "0001-01-01"),
            ("status", "open"),
            ("pattern", &format!("%{SEARCHED}%")),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// pgbench has no list of texts to draw from: a copy for each id, with a variable of its own.
    fn copies_by_id(&self, operation: Operation) -> Result<(Vec<PathBuf>, Named), String> {
        let ids = match operation.resource {
            Resource::Client => &self.clients,
            Resource::Invoice => &self.invoices,
            Resource::Deal | Resource::Task | Resource::Ticket => {
                return Err("its script computes the ids".to_owned());
            }
        };
        let (mut copies, mut variables) = (Vec::new(), Vec::new());
        for (number, id) in ids.iter().enumerate() {
            let variable = format!("id{number:02}");
            let name = format!("{}-{number:02}", operation.name);
            copies.push(self.scripts.copy(
                &operation.script(),
                &name,
                &[(":id", &format!(":{variable}"))],
            )?);
            variables.push((variable, id.clone()));
        }
        Ok((copies, variables))
    }
}
