//! Records what a service asks of its database: while calls are made, the server logs every statement with its
//! parameters (`log_statement`), and the part of the log that belongs to each call is read back.
//!
//! A service also works in the background, on the same connections. What it does between the calls is background by
//! definition, so every transaction of a call that looks like one of those is left out of the recording.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::database::Database;
use crate::statement_log::{self, Statement, entries};

/// Calls that are recorded.
const CALLS: usize = 24;
/// Calls before them: caches are filled, and every connection has noticed that it is to log.
const WARM_UP: usize = 3;
/// The pause after a call in which only background work is logged, at least; as long as the call itself, if that is more.
const PAUSE: Duration = Duration::from_millis(100);
/// What a call sent, by which its traces in the statements are found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    pub path: String,
    pub idempotency_key: String,
}

/// One recorded call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub sent: Sent,
    pub statements: Vec<Statement>,
}

/// What a service did for an operation.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    /// The role that it is connected as.
    pub role: String,
    pub calls: Vec<Call>,
}

/// The log of a server on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    pub database: Database,
    pub log: PathBuf,
}

impl Recorder {
    /// Records what `make_call` asks of a service, whose connections have its name as their application's.
    pub(crate) async fn record(
        &self,
        service: &str,
        make_call: impl AsyncFnMut() -> Result<Sent, String>,
    ) -> Result<Recording, String> {
        self.switch(statement_log::ON).await?;
        let taken = self.take(make_call).await;
        // Also after a failure: a server that logs everything is slow, and its log has what nobody should read.
        self.switch(statement_log::OFF).await?;
        assemble(service, taken?)
    }

    async fn switch(&self, settings: &str) -> Result<(), String> {
        self.database.run("public", &format!("{settings} select pg_reload_conf();")).await?;
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }

    /// Makes the calls. Statements are logged before they run, so a call's are in the log when its answer is there.
    async fn take(&self, mut make_call: impl AsyncFnMut() -> Result<Sent, String>) -> Result<Taken, String> {
        let mut taken = Taken::default();
        let mut from = self.length()?;
        for number in 0..WARM_UP + CALLS {
            let begin = Instant::now();
            let sent = make_call().await?;
            let end = self.length()?;
            tokio::time::sleep(begin.elapsed().max(PAUSE)).await;
            let next = self.length()?;
            if number >= WARM_UP {
                taken.parts.push(Part { log: self.read(from, end)?, call: Some(taken.sent.len()) });
                taken.sent.push(sent);
            }
            taken.parts.push(Part { log: self.read(end, next)?, call: None });
            from = next;
        }
        Ok(taken)
    }

    fn length(&self) -> Result<u64, String> {
        std::fs::metadata(&self.log).map(|file| file.len()).map_err(|fault| unreadable(&self.log, &fault))
    }

    fn read(&self, from: u64, to: u64) -> Result<String, String> {
        let mut text = Vec::new();
        let read = File::open(&self.log).and_then(|mut file| {
            file.seek(SeekFrom::Start(from))?;
            file.take(to - from).read_to_end(&mut text)
        });
        read.map_err(|fault| unreadable(&self.log, &fault))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

fn unreadable(log: &Path, fault: &std::io::Error) -> String {
    format!("the server's log {}: {fault}", log.display())
}

/// What was sent, and what was logged meanwhile.
#[derive(Default)]
struct Taken {
    sent: Vec<Sent>,
    parts: Vec<Part>,
}

/// A piece of the log: of a call, or of the pause after one.
struct Part {
    log: String,
    call: Option<usize>,
}

/// A transaction, or a statement outside of one.
struct Unit {
    call: Option<usize>,
    statements: Vec<Statement>,
}

impl Unit {
    fn texts(&self) -> Vec<&str> {
        self.statements.iter().map(|statement| statement.text.as_str()).collect()
    }
}

fn assemble(service: &str, taken: Taken) -> Result<Recording, String> {
    let mut units = Vec::<Unit>::new();
    let mut role = String::new();
    // The transaction that a connection has open; it counts as begun where its first statement is.
    let mut open = HashMap::<String, usize>::new();
    for part in &taken.parts {
        for entry in entries(&part.log).filter(|entry| entry.application == service) {
            role = entry.role;
            let word = entry.statement.text.to_ascii_lowercase();
            if let Some(unit) = open.get(&entry.process) {
                units[*unit].statements.push(entry.statement);
                if word == "commit" || word == "rollback" {
                    open.remove(&entry.process);
                }
                continue;
            }
            if word.starts_with("begin") {
                open.insert(entry.process, units.len());
            }
            units.push(Unit { call: part.call, statements: vec![entry.statement] });
        }
    }
    let background: HashSet<_> = units.iter().filter(|unit| unit.call.is_none()).map(Unit::texts).collect();
    let mut calls: Vec<Call> =
        taken.sent.into_iter().map(|sent| Call { sent, statements: Vec::new() }).collect();
    for unit in units.iter().filter(|unit| !background.contains(&unit.texts())) {
        if let Some(call) = unit.call {
            calls[call].statements.extend_from_slice(&unit.statements);
        }
    }
    leave_out_rare(&mut calls);
    if calls.iter().any(|call| call.statements.is_empty()) {
        return Err(format!("the log has no statements of {service} for a call: is it the right log?"));
    }
    Ok(Recording { role, calls })
}

/// What fewer than half of the calls do is not part of the operation, such as a driver that looks up a type.
fn leave_out_rare(calls: &mut [Call]) {
    let mut makers = HashMap::<String, usize>::new();
    for call in &*calls {
        let texts: HashSet<&str> = call.statements.iter().map(|statement| statement.text.as_str()).collect();
        for text in texts {
            *makers.entry(text.to_owned()).or_default() += 1;
        }
    }
    let enough = calls.len().div_ceil(2);
    for call in calls {
        call.statements.retain(|statement| makers[&statement.text] >= enough);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(process: u32, message: &str) -> String {
        format!("load:{process}|svc_crm|crm|{message}\n")
    }

    #[test]
    fn background_work_and_other_services_are_left_out_of_a_call() {
        let own = line(7, "LOG:  statement: BEGIN")
            + &line(9, "LOG:  statement: poll")
            + "load:5|svc_work|work|LOG:  statement: select 2\n"
            + &line(7, "LOG:  statement: insert")
            + &line(7, "LOG:  statement: COMMIT");
        let taken = || Taken {
            sent: vec![Sent::default()],
            parts: vec![
                Part { log: own.clone(), call: Some(0) },
                Part { log: line(7, "LOG:  statement: poll"), call: None },
            ],
        };
        let recording = assemble("crm", taken()).unwrap();
        let texts: Vec<_> = recording.calls[0].statements.iter().map(|each| each.text.as_str()).collect();
        assert_eq!((texts, recording.role.as_str()), (vec!["BEGIN", "insert", "COMMIT"], "svc_crm"));
        assert!(assemble("billing", taken()).is_err(), "nothing was recorded of it");
    }
}
