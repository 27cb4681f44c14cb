//! What the whole mesh takes when nothing happens: the CPU time of each process beside many accounts that do nothing. What
//! it finds is what the programs do by themselves, most of it looking for work.

use std::time::Duration;

use deploy_tools::Result;
use tokio::time::{Instant, sleep};

use crate::database::Database;
use crate::options::Idle;
use crate::process::{Cpu, LOAD, Watched, spent};
use crate::report::{Column, Figures, Row, Table, column, require_met};

/// Accounts of one transaction.
const CHUNK: u32 = 10_000;
/// The rows of an account in every schema, and those that only one has.
const CHUNK_OF_ACCOUNTS: &str = include_str!("idle/accounts.sql");
const CHASSIS: &str = include_str!("idle/chassis.sql");
const SERVICES: [Service; 7] = [
    Service {
        name: "gateway",
        readers: "",
        rest: None,
        mails: false,
        rows: include_str!("idle/gateway.sql"),
    },
    Service {
        name: "relations",
        readers: "automation,billing",
        rest: None,
        mails: false,
        rows: include_str!("idle/relations.sql"),
    },
    Service {
        name: "billing",
        readers: "automation,crm,work",
        rest: Some("7 days"),
        mails: true,
        rows: include_str!("idle/billing.sql"),
    },
    Service {
        name: "crm",
        readers: "automation,work",
        rest: Some("7 days"),
        mails: false,
        rows: include_str!("idle/crm.sql"),
    },
    Service {
        name: "support",
        readers: "automation,work",
        rest: Some("7 days"),
        mails: true,
        rows: include_str!("idle/support.sql"),
    },
    Service {
        name: "work",
        readers: "automation",
        rest: Some("1 day"),
        mails: false,
        rows: include_str!("idle/work.sql"),
    },
    Service {
        name: "automation",
        readers: "",
        rest: None,
        mails: true,
        rows: include_str!("idle/automation.sql"),
    },
];
/// What the filling has caused, such as checks of connections and statistics, is over after this.
const REST: Duration = Duration::from_secs(40);
/// How long it is waited for quiet after that, and how long each look takes.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_secs(10);

const COLUMNS: [Column; 2] = [column("CPU ms", "cpu_ms", 0), column("% of a core", "percent", 2)];

/// What an account has in a schema.
struct Service {
    name: &'static str,
    /// Who reads its log.
    readers: &'static str,
    /// It looks for what comes with time passing: how long it rests in an account in which nothing comes.
    rest: Option<&'static str>,
    mails: bool,
    /// SQL that adds the service's own rows.
    rows: &'static str,
}

pub(crate) async fn run(options: &Idle) -> Result<()> {
    let Idle { setup, accounts, seconds, limit } = options;
    let database = setup.database()?.ok_or("idle needs the database to fill it with accounts")?;
    let watched = setup.watched();
    if watched.cpu().len() < 2 {
        return Err("idle needs the processes (--process), and /proc to read their CPU time from".into());
    }
    fill(&database, *accounts).await?;
    settle(&watched, *limit).await;
    eprintln!("Measuring for {seconds} s");
    let (cpu, elapsed) = observe(&watched, Duration::from_secs(*seconds)).await;
    let table = Table { labels: &["process"], columns: &COLUMNS, rows: rows(&cpu, elapsed, *limit) };
    let missed = require_met(std::slice::from_ref(&table));
    let settings = format!(
        "{accounts} accounts that do nothing, {seconds} s, at most {limit} % of a core for everything together"
    );
    setup.publish("idle", settings, vec![table])?;
    missed
}

/// Adds the accounts with what they had left when they were last used.
async fn fill(database: &Database, accounts: u32) -> Result<()> {
    eprintln!("Filling the database with {accounts} accounts");
    let begin = Instant::now();
    for first in (1..=accounts).step_by(usize::try_from(CHUNK)?) {
        let last = (first + CHUNK - 1).min(accounts);
        for service in &SERVICES {
            database.run(service.name, &service.script(first, last)).await?;
        }
        eprintln!("  {last} of {accounts} accounts after {} s", begin.elapsed().as_secs());
    }
    // As after hours of running, and nothing is left to be written to disk while it is measured.
    eprintln!("  vacuum analyze");
    let end = "set statement_timeout = 0; set maintenance_work_mem = '512MB'; vacuum analyze; checkpoint;";
    database.run("public", end).await.map(drop)
}

impl Service {
    /// One transaction, so that no worker sees an account without the rows that say that nothing is due.
    fn script(&self, first: u32, last: u32) -> String {
        let Self { readers, rest, mails, rows, .. } = self;
        let (scans, rest) = (rest.is_some(), rest.unwrap_or_default());
        format!(
            "\\set from {first}\n\\set to {last}\n\\set readers '{{{readers}}}'\n\
             \\set scans {scans}\n\\set rest '{rest}'\n\\set mails {mails}\n\
             set statement_timeout = 0;\nset synchronous_commit = off;\n\
             begin;\n{CHUNK_OF_ACCOUNTS}\n{CHASSIS}\n{rows}\ncommit;\n"
        )
    }
}

/// Waits until everything together takes less than the limit, or long enough.
async fn settle(watched: &Watched, limit: f64) {
    eprintln!("Waiting until it is quiet");
    sleep(REST).await;
    let begin = Instant::now();
    while begin.elapsed() < SETTLE_TIMEOUT {
        let (cpu, elapsed) = observe(watched, LOOK).await;
        let percent = percent(together(&cpu), elapsed);
        eprintln!("  {percent:.1} % of a core");
        if percent <= limit {
            return;
        }
    }
    eprintln!("  it does not become quieter");
}

/// What was used in a while, and how long that was.
async fn observe(watched: &Watched, time: Duration) -> (Cpu, Duration) {
    let (before, begin) = (watched.cpu(), Instant::now());
    sleep(time).await;
    let mut cpu = spent(&before, &watched.cpu());
    cpu.remove(LOAD);
    (cpu, begin.elapsed())
}

fn together(cpu: &Cpu) -> f64 {
    cpu.values().sum()
}

fn percent(cpu_ms: f64, elapsed: Duration) -> f64 {
    cpu_ms / elapsed.as_secs_f64() / 10.0
}

fn rows(cpu: &Cpu, elapsed: Duration, limit: f64) -> Vec<Row> {
    let row = |name: &str, cpu_ms: f64| {
        let mut figures = Figures::default();
        figures.put("cpu_ms", Some(cpu_ms));
        figures.put("percent", Some(percent(cpu_ms, elapsed)));
        Row::new(vec![name.to_owned()], vec![figures])
    };
    let all = together(cpu);
    let sum = row("together", all).judged(percent(all, elapsed) <= limit);
    cpu.iter().map(|(name, cpu_ms)| row(name, *cpu_ms)).chain([sum]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{MISSED, OK};

    #[test]
    fn all_processes_together_have_a_verdict() {
        let cpu = Cpu::from([("gateway".to_owned(), 1_200.0), ("postgres".to_owned(), 1_800.0)]);
        let minutes = Duration::from_mins(2);
        let verdict = |limit| rows(&cpu, minutes, limit).iter().map(|row| row.verdict).collect::<Vec<_>>();
        assert_eq!(verdict(2.5), [None, None, Some(OK)]);
        assert_eq!(verdict(2.4), [None, None, Some(MISSED)]);
        assert_eq!(rows(&cpu, minutes, 3.0)[2].median.cell("percent", 2), "2.50");
    }

    #[test]
    fn every_account_of_a_chunk_is_added_in_one_transaction() {
        for service in &SERVICES {
            let script = service.script(1, 20);
            let words = |word: &str| script.lines().filter(|line| line.trim() == word).count();
            assert_eq!((words("begin;"), words("commit;")), (1, 1), "{}", service.name);
            assert!(script.contains("\\set from 1\n\\set to 20\n"), "{}", service.name);
        }
    }
}
