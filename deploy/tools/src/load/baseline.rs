//! The other side of the comparison: what a service asks of its database for an operation, recorded and run by pgbench.

use std::path::PathBuf;
use std::time::Duration;

use deploy_tools::Result;
use regex_lite::Regex;

use crate::clients::Client;
use crate::database::Database;
use crate::operations::{DEAL, TASK, TICKET};
use crate::pgbench::Plan;
use crate::record::{Recorder, Recording, Sent};
use crate::replay::{Scripts, Types};
use crate::report::in_file;
use crate::requests::{Load, Target};
use crate::statement_log::Statement;

/// Queues log entries for their positions, under the account that is a parameter.
const QUEUE: &str = r"(insert into pending \(account_id, id, at\) select )\$\d+::uuid";
/// Refuses a record that has another version than the call has read, or an event more.
const VERSION_GUARD: &str =
    r"case when version = \$\d+::bigint( - 1)?( and timed_events = \$\d+::bigint)? then \$\d+(::bigint)? end";
/// Refuses a number that is not the next of its counter; it is a parameter too.
const NUMBER_GUARD: &str = "case when counter.value = excluded.value - 1 then excluded.value end";
/// Gives a log entry its version: the record's own, which is a parameter.
const VERSION: &str = "coalesce(entry.version, latest.version + 1, 1)";
const COUNTED_VERSION: &str = "coalesce(latest.version + 1, 1)";
/// Finds out whether a log entry is a change, by its image, which is a parameter too.
const CHANGED: &str = "latest.image_hash is distinct from entry.image_hash";
/// The end of the insert of log entries.
const ENTERED: &str = "returning id";
/// An account that nobody has, and whose entries nobody numbers.
const NOBODY: &str = "'00000000-0000-0000-0000-000000000000'::uuid";
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
    pub(crate) fn database(&self) -> &Database {
        &self.recorder.database
    }

    /// Records the requests of a load and writes the scripts for pgbench, whose names begin with `name`.
    pub(crate) async fn plan(&self, name: &str, service: &str, target: &Target, load: &Load) -> Result<Plan> {
        let mut few = target.clone();
        for resource in [DEAL, TASK, TICKET] {
            few.ids.entry(resource.to_owned()).or_default().truncate(CHANGED_RECORDS);
        }
        let mut client = Client::open(&few, load).await?;
        let mut number = 0;
        let send = async || {
            client.send(number).await?;
            number += 1;
            let (path, idempotency_key) =
                (client.requests.path.clone(), client.requests.idempotency_key.clone());
            Ok(Sent { path, idempotency_key })
        };
        let mut recording = self.recorder.record(service, send).await?;
        for statement in recording.calls.iter_mut().flat_map(|call| &mut call.statements) {
            silence_events(statement)?;
            count_versions(statement)?;
        }
        let existing: Vec<&[String]> = target.ids.values().map(Vec::as_slice).collect();
        self.write(name, service, recording, &existing).await
    }

    /// Writes the scripts of a recording. `existing` has the ids of records by kind.
    async fn write(
        &self,
        name: &str,
        service: &str,
        recording: Recording,
        existing: &[&[String]],
    ) -> Result<Plan> {
        let types = self.types(service, &recording).await?;
        let Scripts { scripts, values } = Scripts::new(&recording.calls, &types, existing)?;
        let statements = recording.calls.last().map_or(0, |call| call.statements.len());
        eprintln!("  {name}: recorded {statements} statements, {} kinds of calls", scripts.len());
        let mut files = Vec::new();
        for (number, script) in scripts.iter().enumerate() {
            let path = self.work.join(format!("{name}-{number}.sql"));
            std::fs::write(&path, &script.text).map_err(in_file(&path))?;
            files.push(format!("{}@{}", path.display(), script.weight));
        }
        let (database, service) = (self.database().clone(), service.to_owned());
        Ok(Plan { database, service, role: recording.role, files, values })
    }

    /// The types of parameters, as the server infers them: the log does not have those that the service declares.
    async fn types(&self, service: &str, recording: &Recording) -> Result<Types> {
        let mut types = Types::new();
        for statement in recording.calls.iter().flat_map(|call| &call.statements) {
            if !statement.parameters.is_empty() && !types.contains_key(&statement.text) {
                types.insert(statement.text.clone(), self.types_of(service, statement).await?);
            }
        }
        Ok(types)
    }

    async fn types_of(&self, service: &str, statement: &Statement) -> Result<Vec<String>> {
        let unclear = Regex::new(r"could not determine data type of parameter \$(\d+)")?;
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
            let fault = match self.database().run(service, &sql).await {
                Ok(types) => return Ok(types.split('|').map(str::to_owned).collect()),
                Err(fault) => fault,
            };
            // `$1 is null or x = $1` says nothing of the type at the first place, so the server gives up.
            let number = unclear
                .captures(&fault.to_string())
                .and_then(|found| found[1].parse::<usize>().ok()?.checked_sub(1));
            let number = number.filter(|number| declared.get(*number) == Some(&"unknown"));
            tried = number.map(|number| (number, CANDIDATES.iter())).or(tried);
            let next = tried.as_mut().and_then(|(number, kinds)| Some((*number, kinds.next()?)));
            let Some((number, kind)) = next else { return Err(fault) };
            declared[number] = kind;
        }
    }

    /// Waits until the events of what was created have been delivered, so that this is not part of the next round. Gives
    /// up after a while.
    pub(crate) async fn drain_events(&self, service: &str, accounts: &[&str]) -> Result<()> {
        if !self.has_log(service).await? {
            return Ok(());
        }
        let accounts = format!("any('{{{}}}'::uuid[])", accounts.join(","));
        let waiting = format!(
            "select (select count(*) from pending where account_id = {accounts})
                + (select count(*) from reader where account_id = {accounts} and target > position)"
        );
        let mut left = 0;
        for _ in 0..EVENT_CHECKS {
            left = self.database().number(service, &waiting).await?;
            if left == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        eprintln!("  {left} events are still on their way; delivering them slows the next round down");
        Ok(())
    }

    /// Programs of an older release have none.
    async fn has_log(&self, service: &str) -> Result<bool> {
        let sql = "select count(*) from pg_class where oid = to_regclass('pending')";
        Ok(self.database().number(service, sql).await? > 0)
    }

    /// Removes the queue that pgbench wrote: nobody will come for it.
    pub(crate) async fn remove_events(&self, service: &str) -> Result<()> {
        if !self.has_log(service).await? {
            return Ok(());
        }
        let sql = format!("delete from pending where account_id = {NOBODY}");
        self.database().run(service, &sql).await.map(drop)
    }
}

/// Queues log entries under an account that nobody has: delivering their events would take time from what is measured.
fn silence_events(statement: &mut Statement) -> Result<()> {
    let silenced = format!("${{1}}{NOBODY}");
    statement.text = Regex::new(QUEUE)?.replace(&statement.text, silenced.as_str()).into_owned();
    Ok(())
}

/// Lets records, counters and log entries count. A script has the versions, numbers and images of the recorded calls, and
/// repeats them for any record: a version or number that is there already would be refused, and the image that a record has
/// already would be no change, which is less work than the calls were.
fn count_versions(statement: &mut Statement) -> Result<()> {
    let text = statement.text.replace(NUMBER_GUARD, "counter.value + 1");
    statement.text = Regex::new(VERSION_GUARD)?.replace(&text, "version + 1").into_owned();
    if statement.text.contains(VERSION) {
        let text = statement.text.replace(VERSION, COUNTED_VERSION).replace(CHANGED, "true");
        // Two scripts that change nothing of a record do not wait for each other.
        statement.text = text.replace(ENTERED, &format!("on conflict do nothing {ENTERED}"));
    }
    Ok(())
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

    /// The statement that writes log entries, within its source.
    fn finish() -> Statement {
        let text = include_str!("../../../../chassis/data/src/write/statement.rs");
        Statement { text: text.replace("${account}", "$1"), parameters: Vec::new() }
    }

    #[test]
    fn log_entries_are_queued_where_nobody_looks() {
        let mut statement = finish();
        silence_events(&mut statement).unwrap();
        let queue = format!("insert into pending (account_id, id, at) select {NOBODY}, id");
        assert!(statement.text.contains(&queue));
    }

    #[test]
    fn a_repeated_change_has_the_next_version_of_its_record() {
        let mut statement = finish();
        assert!(statement.text.contains(VERSION) && statement.text.contains(CHANGED));
        assert!(statement.text.contains(NUMBER_GUARD));
        count_versions(&mut statement).unwrap();
        assert!(
            !statement.text.contains(NUMBER_GUARD)
                && !statement.text.contains("entry.version")
                && statement.text.contains(COUNTED_VERSION)
        );
        assert!(statement.text.contains("latest.version is null or true"));
        assert!(statement.text.contains("on conflict do nothing returning id"));
        for guarded in [
            include_str!("../../../../svc-work/src/task/store.rs"),
            include_str!("../../../../svc-crm/src/deal/store.rs"),
            include_str!("../../../../svc-support/src/ticket/store.rs"),
        ] {
            let mut statement = Statement { text: guarded.to_owned(), parameters: Vec::new() };
            count_versions(&mut statement).unwrap();
            let text = statement.text;
            assert!(!text.contains("case when version") && text.contains("version = version + 1"), "{text}");
        }
    }

    /// A server of its own: recording changes the settings of the whole server.
    struct Server(PathBuf);

    impl Server {
        fn run(command: &[&str]) -> String {
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../postgres");
            let output = Command::new(script).args(command).output().unwrap();
            assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }

        fn start() -> (Self, Baseline) {
            let work = std::env::temp_dir().join(format!("load-{}", Uuid::new_v4().simple()));
            let folder = work.to_str().unwrap();
            let url = Self::run(&["start", "--fast", folder]);
            let database = Database::new(Self::run(&["bin"]).as_ref(), &url).unwrap();
            let recorder = Recorder { database, log: Self::run(&["log", folder]).into() };
            (Self(work.clone()), Baseline { recorder, work })
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            Self::run(&["wipe", self.0.to_str().unwrap()]);
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
        let items = database.run("shop", "select id from item").await.unwrap();
        let items: Vec<String> = items.lines().map(str::to_owned).collect();
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
        let words: Vec<_> = recording.calls[0].texts().iter().map(|text| &text.trim()[..5]).collect();
        assert_eq!((words, recording.role.as_str()), (vec!["begin", "inser", "updat", "commi"], "postgres"));
        let count = "select count(*) || '|' || count(distinct item_id) from sale";
        let sales = recording.calls.len() + 3;
        assert_eq!(database.run("shop", count).await.unwrap(), format!("{sales}|4"));

        let plan = baseline.write("sale", "shop", recording, &[&items]).await.unwrap();
        let second = Duration::from_secs(1);
        let span = Span { connections: 3, warm_up: second, measured: second };
        // A key, id or version that is there twice would end it: the table has each of them once.
        let outcome = pgbench::run(&plan, span, &Watched::default()).await.unwrap();
        assert!(outcome.requests > 0.0, "{outcome:?}");
        let of = database.run("shop", count).await.unwrap();
        let (all, items_sold) = of.split_once('|').unwrap();
        assert!(all.parse::<usize>().unwrap() > sales && items_sold.parse::<usize>().unwrap() > 4, "{of}");
        let text = "update item set version = 2 where $1 is null or version <= $1".to_owned();
        let unclear = Statement { text, parameters: vec![None] };
        assert_eq!(baseline.types_of("shop", &unclear).await.unwrap(), ["bigint"], "the log has no types");
        let settings = database.run("public", "show log_statement").await.unwrap();
        assert_eq!(settings, "none", "the server logs no more than before");
    }
}
