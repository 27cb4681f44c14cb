//! The other side of the comparison: the service's own statements, run by pgbench on the same server and data.
//!
//! How to connect comes from the environment (`PGHOST`, `PGUSER`, `PGPASSWORD`, …), which a command line would show to
//! everyone. pgbench starts cold, so its first seconds are left out, like the warm-up of the other side.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

use crate::measure::Span;
use crate::operations::{Operation, SEARCHED};
use crate::process::{Cpu, Watched, spent};

/// How many clients the copies of the get script ask for.
const GET_COPIES: usize = 32;
/// Bytes of a stored response and of an event, as the service writes them.
const RESPONSE_BYTES: usize = 260;

/// How many times, a quarter of a second apart, is looked whether all events have been delivered.
const EVENTS_WAIT: u32 = 240;

/// pgbench, ready to run.
#[derive(Debug)]
pub struct Pgbench {
    programs: PathBuf,
    scripts: PathBuf,
    /// Where copies of scripts are written.
    work: PathBuf,
    account: String,
    ids: Vec<String>,
}

#[derive(Debug)]
pub struct Outcome {
    pub per_second: f64,
    pub transactions: f64,
    pub cpu: Cpu,
}

impl Pgbench {
    /// Finds out which account the clients belong to.
    pub async fn new(
        programs: PathBuf,
        scripts: PathBuf,
        work: PathBuf,
        all_ids: &[String],
    ) -> Result<Self, String> {
        let step = (all_ids.len() / GET_COPIES).max(1);
        let ids: Vec<String> = all_ids.iter().step_by(step).take(GET_COPIES).cloned().collect();
        let mut own = Self { programs, scripts, work, account: String::new(), ids };
        let one = own.ids.first().ok_or("no client to ask for")?;
        own.account =
            own.sql(&format!("select account_id from relations.relation where id = '{one}'")).await?;
        if own.account.is_empty() {
            return Err(
                "the database does not have the clients that REST shows: is it the same one?".to_owned()
            );
        }
        Ok(own)
    }

    /// The single value that a statement gives.
    async fn sql(&self, statement: &str) -> Result<String, String> {
        let output = Command::new(self.programs.join("psql"))
            .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement])
            .output()
            .await
            .map_err(|fault| format!("psql: {fault}"))?;
        if !output.status.success() {
            return Err(format!("psql: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    pub async fn server_version(&self) -> Result<String, String> {
        self.sql("show server_version").await
    }

    /// As after hours of running: statistics are known, and the search index has no pending entries.
    pub async fn settle(&self) -> Result<(), String> {
        self.sql("vacuum analyze relations.relation").await?;
        self.sql("vacuum analyze relations.total").await.map(drop)
    }

    /// Waits until the events of what was created have been delivered, so that this is not part of the next round. Gives
    /// up after a while; returns how many are left.
    pub async fn drain_events(&self) -> Result<u64, String> {
        let waiting = format!(
            "select count(*) from relations.outbox where account_id = '{}' and listener <> 'bench'",
            self.account
        );
        let mut left = 0;
        for _ in 0..EVENTS_WAIT {
            left = self.sql(&waiting).await?.parse().map_err(|_| "psql gave no number".to_owned())?;
            if left == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        Ok(left)
    }

    /// Removes the events that pgbench wrote: nobody will come for them.
    pub async fn clean(&self) -> Result<(), String> {
        let account = &self.account;
        self.sql(&format!(
            "delete from relations.outbox where account_id = '{account}' and listener = 'bench'"
        ))
        .await
        .map(drop)
    }

    pub async fn run(&self, operation: Operation, span: Span, watched: &Watched) -> Result<Outcome, String> {
        let (warm_up, measured) = (whole_seconds(span.warm_up), whole_seconds(span.measured));
        let mut command = Command::new(self.programs.join("pgbench"));
        // One second more: the line of the last second is not always printed.
        command.args(["-n", "-M", "prepared", "-j", "2", "-P", "1"]);
        command.args(["-T", &(warm_up + measured + 1).to_string(), "-c", &span.connections.to_string()]);
        for (name, value) in self.variables(operation).await? {
            command.arg("-D").arg(format!("{name}={value}"));
        }
        for script in self.scripts_of(operation)? {
            command.arg("-f").arg(script);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|fault| format!("pgbench: {fault}"))?;
        let stderr = child.stderr.take().ok_or("pgbench has no stderr")?;
        let mut lines = BufReader::new(stderr);
        let outcome = watch(&mut lines, warm_up, measured, watched).await?;
        let mut rest = String::new();
        let _ = lines.read_to_string(&mut rest).await;
        let status = child.wait().await.map_err(|fault| format!("pgbench: {fault}"))?;
        if !status.success() {
            return Err(format!("pgbench ended with {status}: {rest}"));
        }
        Ok(outcome)
    }

    fn scripts_of(&self, operation: Operation) -> Result<Vec<PathBuf>, String> {
        let name = match operation {
            Operation::Get => return self.copies_of_get(),
            Operation::List25 | Operation::List100 => "list",
            Operation::Search => "search",
            Operation::Create => return Ok(vec![self.scripts.join("create.sql")]),
        };
        let copy = self.work.join(format!("{}.sql", operation.name()));
        let text = read(&self.scripts.join(format!("{name}.sql")))?;
        write(&copy, &text.replace(":limit", &operation.page_size().to_string()))?;
        Ok(vec![copy])
    }

    fn copies_of_get(&self) -> Result<Vec<PathBuf>, String> {
        let text = read(&self.scripts.join("get.sql"))?;
        (0..self.ids.len())
            .map(|number| {
                let copy = self.work.join(format!("get-{number:02}.sql"));
                write(&copy, &text.replace(":id;", &format!(":id{number:02};")))?;
                Ok(copy)
            })
            .collect()
    }

    async fn variables(&self, operation: Operation) -> Result<Vec<(String, String)>, String> {
        let mut variables = vec![
            ("account", self.account.clone()),
            ("role", "client".to_owned()),
            ("list", "client".to_owned()),
            ("all_days", "0001-01-01".to_owned()),
            ("pattern", format!("%{SEARCHED}%")),
        ];
        if operation.writes() {
            let moment =
                self.sql("select floor(extract(epoch from now()) * 1000)::bigint, current_date").await?;
            let (ms, today) = moment.split_once('|').ok_or("psql gave no time")?;
            variables.extend(create_variables(ms, today));
        }
        let mut variables: Vec<_> =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        if operation == Operation::Get {
            variables.extend(
                self.ids.iter().enumerate().map(|(number, id)| (format!("id{number:02}"), id.clone())),
            );
        }
        Ok(variables)
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|fault| format!("{}: {fault}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|fault| format!("{}: {fault}", path.display()))
}

/// What a create sends besides numbers: texts as long as the ones that REST sends.
fn create_variables(ms: &str, today: &str) -> Vec<(&'static str, String)> {
    let hex = |bytes: usize| format!("\\x{}", "5a".repeat(bytes));
    let event = r#"{"{\"id\":\"019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05\",\"type\":\"company\",\"company_name\":\"Handel 000001 B.V.\",\"firstname\":\"Sanne\",\"lastname\":\"de Vries\",\"email\":\"info1@example.com\",\"external_id\":null,\"debtor_number\":\"D-00001\"}"}"#;
    [
        ("ms", ms),
        ("route", "/admin.relations.v1.ClientService/CreateClient"),
        ("type", "company"),
        ("firstname", "Sanne"),
        ("lastname", "de Vries"),
        ("email", "info123456@example.com"),
        ("phone", "+31 20 123 4567"),
        ("address", "Prinsengracht 123456"),
        ("zipcode", "1015 DV"),
        ("city", "Amsterdam"),
        ("country", "NL"),
        ("payment_term", "14"),
        ("search_text", "handel b.v.\nsanne de vries\ninfo@example.com\namsterdam\n"),
        ("listeners", "{bench}"),
        ("entity_types", "{client}"),
        ("sequences", "{1000}"),
        ("event_types", "{customer.created}"),
        ("event_data", event),
        ("lists", "{client,client,client/company,client/company}"),
        ("entries", "{1,1,1,1}"),
        ("fingerprint", &hex(32)),
        ("response", &hex(RESPONSE_BYTES)),
        ("buckets", &format!("{{0001-01-01,{today},0001-01-01,{today}}}")),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into()
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs().max(1)
}

/// Reads the lines of progress, one a second, and takes those of the measured time.
async fn watch(
    lines: &mut (impl AsyncBufReadExt + Unpin),
    warm_up: u64,
    measured: u64,
    watched: &Watched,
) -> Result<Outcome, String> {
    let mut other = String::new();
    let mut seen = Vec::new();
    let mut before = Cpu::new();
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).await.map_err(|fault| fault.to_string())? == 0 {
            return Err(format!("pgbench ended before its time: {other}"));
        }
        let Some(progress) = progress(&line) else {
            other.push_str(&line);
            continue;
        };
        seen.push(progress);
        let count = seen.len() as u64;
        if count == warm_up {
            before = watched.cpu();
        } else if count == warm_up + measured {
            let cpu = spent(&before, &watched.cpu());
            return total(&seen[usize::try_from(warm_up).unwrap_or(0) - 1..], cpu);
        }
    }
}

/// Sums up the seconds after the first, which says only when the others begin.
fn total(seen: &[(f64, f64)], cpu: Cpu) -> Result<Outcome, String> {
    let transactions = seen.windows(2).map(|pair| (pair[1].0 - pair[0].0) * pair[1].1).sum::<f64>();
    let (first, last) = seen.first().zip(seen.last()).ok_or("pgbench reported nothing")?;
    Ok(Outcome { per_second: transactions / (last.0 - first.0), transactions, cpu })
}

/// The end and the rate of `progress: 2.0 s, 9184.9 tps, lat …`.
fn progress(line: &str) -> Option<(f64, f64)> {
    let mut parts = line.trim().strip_prefix("progress: ")?.split(", ");
    let end = parts.next()?.strip_suffix(" s")?.parse().ok()?;
    let rate = parts.next()?.strip_suffix(" tps")?.parse().ok()?;
    Some((end, rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_progress_gives_its_time_and_rate() {
        let line = "progress: 2.0 s, 9184.9 tps, lat 0.108 ms stddev 0.044, 0 failed\n";
        assert_eq!(progress(line), Some((2.0, 9184.9)));
        assert_eq!(progress("pgbench: error: client 3 aborted"), None);
    }

    #[tokio::test]
    async fn the_warm_up_is_left_out_of_the_rate() {
        let mut lines: &[u8] =
            b"pgbench (17)\nprogress: 1.0 s, 10.0 tps, lat\nprogress: 2.0 s, 100.0 tps, lat\n\
            progress: 4.0 s, 200.0 tps, lat\nprogress: 5.0 s, 9.0 tps, lat\n";
        let outcome = watch(&mut lines, 1, 2, &Watched::default()).await.unwrap();
        assert!((outcome.transactions - 500.0).abs() < 1e-6, "{outcome:?}");
        assert!((outcome.per_second - 500.0 / 3.0).abs() < 1e-6, "{outcome:?}");
    }

    #[tokio::test]
    async fn a_pgbench_that_fails_is_quoted() {
        let mut lines: &[u8] = b"pgbench: error: relation does not exist\n";
        let fault = watch(&mut lines, 1, 2, &Watched::default()).await.unwrap_err();
        assert!(fault.contains("relation does not exist"), "{fault}");
    }
}
