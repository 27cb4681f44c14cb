//! Records what a service asks of its database: while calls are made, the server logs every statement with its
//! parameters (`log_statement`), and the part of the log that belongs to each call is read back.
//!
//! A service also works in the background, on the same connections. What it does between the calls is background by
//! definition, so every transaction of a call that looks like one of those is left out of the recording.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use deploy_tools::Result;

use crate::database::Database;
use crate::report::in_file;
use crate::statement_log::{self, Reader, Statement};

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

impl Call {
    pub(crate) fn texts(&self) -> Vec<&str> {
        texts(&self.statements)
    }
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

/// A call, and what was logged during it and in the pause after it.
struct Part {
    sent: Sent,
    during: String,
    after: String,
}

impl Recorder {
    /// Records what `make_call` asks of a service, whose connections have its name as their application's.
    pub(crate) async fn record(
        &self,
        service: &str,
        make_call: impl AsyncFnMut() -> Result<Sent>,
    ) -> Result<Recording> {
        self.switch(statement_log::ON).await?;
        let parts = self.take(make_call).await;
        // Also after a failure: a server that logs everything is slow, and its log has what nobody should read.
        self.switch(statement_log::OFF).await?;
        assemble(service, parts?)
    }

    async fn switch(&self, settings: &str) -> Result<()> {
        self.database.run("public", &format!("{settings} select pg_reload_conf();")).await?;
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }

    /// Makes the calls. Statements are logged before they run, so a call's are in the log when its answer is there.
    async fn take(&self, mut make_call: impl AsyncFnMut() -> Result<Sent>) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        let mut from = self.length()?;
        for number in 0..WARM_UP + CALLS {
            let begin = Instant::now();
            let sent = make_call().await?;
            let end = self.length()?;
            tokio::time::sleep(begin.elapsed().max(PAUSE)).await;
            let next = self.length()?;
            if number >= WARM_UP {
                parts.push(Part { sent, during: self.read(from, end)?, after: self.read(end, next)? });
            }
            from = next;
        }
        Ok(parts)
    }

    fn length(&self) -> Result<u64> {
        Ok(fs::metadata(&self.log).map_err(in_file(&self.log))?.len())
    }

    fn read(&self, from: u64, to: u64) -> Result<String> {
        let mut text = Vec::new();
        let read = File::open(&self.log).and_then(|mut file| {
            file.seek(SeekFrom::Start(from))?;
            file.take(to - from).read_to_end(&mut text)
        });
        read.map_err(in_file(&self.log))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

fn texts(statements: &[Statement]) -> Vec<&str> {
    statements.iter().map(|statement| statement.text.as_str()).collect()
}

/// A transaction, or a statement outside of one.
struct Unit {
    /// The call in which it began; `None` in the pause after one.
    call: Option<usize>,
    statements: Vec<Statement>,
}

fn assemble(service: &str, parts: Vec<Part>) -> Result<Recording> {
    let reader = Reader::new()?;
    let mut units = Vec::<Unit>::new();
    let mut role = String::new();
    // The transaction that a connection has open.
    let mut open = HashMap::<String, usize>::new();
    for (number, part) in parts.iter().enumerate() {
        let logged = [(Some(number), &part.during), (None, &part.after)];
        let entries =
            logged.map(|(call, log)| reader.entries(log).into_iter().map(move |entry| (call, entry)));
        for (call, entry) in entries.into_iter().flatten().filter(|(_, entry)| entry.application == service) {
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
            units.push(Unit { call, statements: vec![entry.statement] });
        }
    }
    let pauses = units.iter().filter(|unit| unit.call.is_none());
    let background: HashSet<_> = pauses.map(|unit| texts(&unit.statements)).collect();
    let mut calls: Vec<Call> =
        parts.into_iter().map(|part| Call { sent: part.sent, statements: Vec::new() }).collect();
    for unit in units.iter().filter(|unit| !background.contains(&texts(&unit.statements))) {
        if let Some(call) = unit.call {
            calls[call].statements.extend_from_slice(&unit.statements);
        }
    }
    leave_out_rare(&mut calls);
    if calls.iter().any(|call| call.statements.is_empty()) {
        return Err(format!("the log has no statements of {service} for a call: is it the right log?").into());
    }
    Ok(Recording { role, calls })
}

/// What fewer than half of the calls do is not part of the operation, such as a driver that looks up a type.
fn leave_out_rare(calls: &mut [Call]) {
    let mut makers = HashMap::<String, usize>::new();
    for text in calls.iter().flat_map(|call| call.texts().into_iter().collect::<HashSet<_>>()) {
        *makers.entry(text.to_owned()).or_default() += 1;
    }
    let enough = calls.len().div_ceil(2);
    for call in calls {
        call.statements.retain(|statement| makers[&statement.text] >= enough);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_work_and_other_services_are_left_out_of_a_call() {
        let line =
            |process: u32, message: &str| format!("load:{process}|svc_crm|crm|LOG:  statement: {message}\n");
        let during = line(7, "BEGIN")
            + &line(9, "poll")
            + "load:5|svc_work|work|LOG:  statement: select 2\n"
            + &line(7, "insert")
            + &line(7, "COMMIT");
        let parts = || {
            let (during, after) = (during.clone(), line(7, "poll"));
            vec![Part { sent: Sent::default(), during, after }]
        };
        let recording = assemble("crm", parts()).unwrap();
        assert_eq!(recording.calls[0].texts(), ["BEGIN", "insert", "COMMIT"]);
        assert_eq!(recording.role, "svc_crm");
        assert!(assemble("billing", parts()).is_err(), "nothing was recorded of it");
    }
}
