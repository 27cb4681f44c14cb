//! The other side of the comparison: what a service asks of its database for an operation, recorded and run by pgbench.

use std::path::PathBuf;
use std::time::Duration;

use deploy_tools::http::Connection;

use crate::database::Database;
use crate::operations::Resource;
use crate::pgbench::{Plan, ScriptFile};
use crate::record::{Recorder, Recording, Sent};
use crate::replay::{self, Types};
use crate::requests::{Load, Requests, Target};
use crate::statement_log::Statement;

/// Services that listen to events, and what makes a listener of each that nobody serves.
const LISTENERS: [&str; 6] = ["relations", "billing", "crm", "support", "work", "automation"];
const NOBODY: &str = "bench-";
/// Records that are changed while a change is recorded: few, so that it shows what grows with each change of one.
const CHANGED_RECORDS: usize = 4;
/// Types that a parameter may have whose type the server cannot infer.
const CANDIDATES: [&str; 8] =
    ["text", "bigint", "integer", "numeric", "uuid", "timestamptz", "date", "boolean"];
/// How many times, a quarter of a second apart, is looked whether all events have been delivered.
const EVENT_CHECKS: u32 = 240;

/// Everything that is needed to record and to clean up.
#[derive(Clone, Debug)]
pub(crate) struct Baseline {
    pub recorder: Recorder,
    /// Folder for the scripts.
    pub work: PathBuf,
}

impl Baseline {
    fn database(&self) -> &Database {
        &self.recorder.database
    }

    /// Records the requests of a load and writes the scripts for pgbench, whose names begin with `name`.
    pub(crate) async fn plan(
        &self,
        name: &str,
        resource: Resource,
        target: &Target,
        load: &Load,
    ) -> Result<Plan, String> {
        let service = resource.service();
        let mut few = target.clone();
        for resource in [Resource::Deal, Resource::Task, Resource::Ticket] {
            few.ids_mut(resource).truncate(CHANGED_RECORDS);
        }
        let mut connection = Connection::open(&target.authority).await.map_err(|fault| fault.to_string())?;
        let mut requests = Requests::new(&few, load.clone(), &format!("record-{name}"));
        let send = async || {
            let answer = connection.send(requests.next()).await.map_err(|fault| fault.to_string())?;
            if answer.status != load.success() {
                return Err(format!("{load} was answered with {}: {}", answer.status, answer.text()));
            }
            let idempotency_key = requests.idempotency_key.clone();
            Ok(Sent { path: requests.path.clone(), idempotency_key })
        };
        let mut recording = self.recorder.record(service, send).await?;
        for call in &mut recording.calls {
            replay::silence_events(&mut call.statements, &LISTENERS, NOBODY);
        }
        self.write(name, service, recording, &target.pools()).await
    }

    /// Writes the scripts of a recording. `existing` has the ids of records by kind.
    async fn write(
        &self,
        name: &str,
        service: &'static str,
        recording: Recording,
        existing: &[&[String]],
    ) -> Result<Plan, String> {
        let types = self.types(service, &recording).await?;
        let (scripts, variables) = replay::scripts(&recording.calls, &types, existing)?;
        let statements = recording.calls.last().map_or(0, |call| call.statements.len());
        eprintln!("  {name}: recorded {statements} statements, {} kinds of calls", scripts.len());
        let mut files = Vec::new();
        for (number, script) in scripts.iter().enumerate() {
            let path = self.work.join(format!("{name}-{number}.sql"));
            std::fs::write(&path, &script.text).map_err(|fault| format!("{}: {fault}", path.display()))?;
            files.push(ScriptFile { path, weight: script.weight });
        }
        Ok(Plan { service, role: recording.role, files, variables })
    }

    /// The types of parameters, as the server infers them: the log does not have those that the service declares.
    async fn types(&self, service: &str, recording: &Recording) -> Result<Types, String> {
        let mut types = Types::new();
        for statement in recording.calls.iter().flat_map(|call| &call.statements) {
            if !statement.parameters.is_empty() && !types.contains_key(&statement.text) {
                types.insert(statement.text.clone(), self.types_of(service, statement).await?);
            }
        }
        Ok(types)
    }

    async fn types_of(&self, service: &str, statement: &Statement) -> Result<Vec<String>, String> {
        let mut declared = vec!["unknown"; statement.parameters.len()];
        // The parameter that is being tried, and the types that are left for it.
        let mut tried = None;
        loop {
            let sql = format!(
                "prepare recorded ({}) as {};
                 select array_to_string(parameter_types, '|') from pg_prepared_statements where name = 'recorded';",
                declared.join(", "),
                statement.text
            );
            let fault = match self.database().value(service, &sql).await {
                Ok(types) => return Ok(types.split('|').map(str::to_owned).collect()),
                Err(fault) => fault,
            };
            // `$1 is null or x = $1` says nothing of the type at the first place, so the server gives up.
            let unclear = undetermined(&fault).filter(|number| declared.get(*number) == Some(&"unknown"));
            tried = unclear.map(|number| (number, CANDIDATES.iter())).or(tried);
            let Some((number, kind)) =
                tried.as_mut().and_then(|(number, kinds)| Some((*number, kinds.next()?)))
            else {
                return Err(fault);
            };
            declared[number] = kind;
        }
    }

    pub(crate) async fn server_version(&self) -> Result<String, String> {
        self.database().value("public", "show server_version").await
    }

    /// Waits until the events of what was created have been delivered, so that this is not part of the next round. Gives
    /// up after a while; returns how many are left.
    pub(crate) async fn drain_events(&self, resource: Resource, account: &str) -> Result<u64, String> {
        let waiting = format!(
            "select count(*) from outbox where account_id = '{account}' and listener not like '{NOBODY}%'"
        );
        let mut left = 0;
        for _ in 0..EVENT_CHECKS {
            let count = self.database().value(resource.service(), &waiting).await?;
            left = count.parse().map_err(|_| format!("psql gave {count} in place of a number"))?;
            if left == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        Ok(left)
    }

    /// Removes the events that pgbench wrote: nobody will come for them.
    pub(crate) async fn clean(&self, resource: Resource, account: &str) -> Result<(), String> {
        let sql = format!("delete from outbox where account_id = '{account}' and listener like '{NOBODY}%'");
        self.database().run(resource.service(), &sql).await
    }
}

/// The index of the parameter whose type the server cannot infer.
fn undetermined(fault: &str) -> Option<usize> {
    let (_, rest) = fault.split_once("could not determine data type of parameter $")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse::<usize>().ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::process::Command;

    use uuid::Uuid;

    use super::*;
    use crate::measure::Span;
    use crate::pgbench;
    use crate::process::Watched;

    /// A server of its own: recording changes the settings of the whole server.
    struct Server(PathBuf);

    impl Server {
        fn run(&self, command: &[&str]) -> String {
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../postgres");
            let output = Command::new(script).args(command).arg(&self.0).output().unwrap();
            assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }

        fn start() -> (Self, Baseline) {
            let server = Self(std::env::temp_dir().join(format!("load-{}", Uuid::new_v4().simple())));
            let url = server.run(&["start", "--fast"]);
            let programs =
                Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../postgres")).arg("bin").output();
            let programs = String::from_utf8(programs.unwrap().stdout).unwrap();
            let database = Database::new(programs.trim().as_ref(), &url).unwrap();
            let log = server.0.join("run/postgres.log");
            let work = server.0.clone();
            (server, Baseline { recorder: Recorder { database, log }, work })
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            self.run(&["wipe"]);
            // The scripts.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const SCHEMA: &str = "create role shopkeeper; create schema shop authorization shopkeeper; set role shopkeeper;
        create table shop.item (id uuid primary key, version bigint not null default 1);
        create table shop.sale (id uuid primary key, item_id uuid not null references shop.item, version bigint not null,
            key text not null unique, unique (item_id, version));
        insert into shop.item select gen_random_uuid() from generate_series(1, 40);";
    /// What the service does: it sells an item, which changes the item's version.
    const SALE: &str = "begin;
        insert into shop.sale (id, item_id, version, key) values (:id, :item, :version, :key);
        update shop.item set version = :version where id = :item;
        commit;";

    #[tokio::test]
    async fn a_recorded_transaction_is_repeated_with_new_ids_and_other_records() {
        let (server, baseline) = Server::start();
        let database = baseline.database();
        database.run("public", SCHEMA).await.unwrap();
        let items = database.value("shop", "select string_agg(id::text, ',') from item").await.unwrap();
        let items: Vec<String> = items.split(',').map(str::to_owned).collect();
        let script = server.0.join("sale.sql");
        std::fs::write(&script, SALE).unwrap();
        let mut versions = HashMap::<&String, u32>::new();
        let mut next = items.iter().take(4).cycle();
        // pgbench stands for the service too: it sends statements with parameters, as a connection with the service's name.
        let send = async || {
            let item = next.next().unwrap();
            let version = versions.entry(item).or_insert(1);
            *version += 1;
            let (id, key) = (Uuid::new_v4(), format!("key-{item}-{version}"));
            let mut call = database.pgbench("shop", "shopkeeper");
            call.env("PGAPPNAME", "shop").args(["-n", "-M", "extended", "-t", "1", "-f"]).arg(&script);
            for variable in [format!("id={id}"), format!("item={item}"), format!("version={version}")] {
                call.args(["-D", &variable]);
            }
            let output = call.args(["-D", &format!("key={key}")]).output().await.unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Ok(Sent { path: item.clone(), idempotency_key: key })
        };
        let recording = baseline.recorder.record("shop", send).await.unwrap();
        let texts: Vec<_> = recording.calls[0].statements.iter().map(|each| each.text.trim()).collect();
        assert!(
            texts[0] == "begin" && texts[1].starts_with("insert") && texts[2].starts_with("update"),
            "{texts:?}"
        );
        assert_eq!((texts.len(), recording.role.as_str()), (4, "postgres"));
        let count = "select count(*) || '|' || count(distinct item_id) from sale";
        let (sales, of) = (recording.calls.len() + 3, database.value("shop", count).await.unwrap());
        assert_eq!(of, format!("{sales}|4"));

        let plan = baseline.write("sale", "shop", recording, &[&items]).await.unwrap();
        let second = Duration::from_secs(1);
        let span = Span { connections: 3, warm_up: second, measured: second };
        // A key, id or version that is there twice would end it: the table has each of them once.
        let outcome = pgbench::run(database, &plan, span, &Watched::default()).await.unwrap();
        assert!(outcome.transactions > 0.0, "{outcome:?}");
        let of = database.value("shop", count).await.unwrap();
        let (all, items_sold) = of.split_once('|').unwrap();
        assert!(all.parse::<usize>().unwrap() > sales && items_sold.parse::<usize>().unwrap() > 4, "{of}");
        let text = "update item set version = 2 where $1 is null or version <= $1".to_owned();
        let unclear = Statement { text, parameters: vec![None] };
        assert_eq!(baseline.types_of("shop", &unclear).await.unwrap(), ["bigint"], "the log has no types");
        let settings = "select setting from pg_settings where name = 'log_statement'";
        assert_eq!(
            database.value("public", settings).await.unwrap(),
            "none",
            "the server logs no more than before"
        );
    }
}
