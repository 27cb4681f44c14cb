//! Whether an export takes as much memory however long the list is: all invoices of a small and of a large account as CSV, read
//! as fast as they come, and what each process has resident meanwhile at most.

use std::time::{Duration, Instant};

use deploy_tools::Result;
use deploy_tools::http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::process::{Memory, Watched};
use crate::report::{Column, Figures, Row, Table, column};
use crate::requests::Target;

const PATH: &str = "/v1/invoices/export";
/// How often memory is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How many times as much the large export may take as the small one, which brings the programs to what they need anyway.
const LIMIT: f64 = 1.25;
/// The programs that an export goes through.
const PROCESSES: [&str; 2] = ["gateway", "billing"];

const COLUMNS: [Column; 6] = [
    column("invoices", "invoices", 0),
    column("MB", "megabytes", 0),
    column("seconds", "seconds", 1),
    column("invoices/s", "rate", 0),
    column("gateway MB", "gateway_mb", 1),
    column("billing MB", "billing_mb", 1),
];

/// An account and how many invoices it has.
pub(crate) struct Exported<'a> {
    pub name: &'static str,
    pub target: &'a Target,
    pub count: u64,
}

/// Exports the small account, then the large one.
pub(crate) async fn measure(accounts: [Exported<'_>; 2], watched: &Watched) -> Result<Table> {
    let mut rows: Vec<Row> = Vec::new();
    for Exported { name, target, count } in accounts {
        let figures = one(target, count, watched).await?;
        let row = Row::new(vec!["all invoices as CSV".to_owned(), name.to_owned()], vec![figures]);
        let is_steady = rows.first().map(|small| is_steady(&small.median, &row.median));
        rows.push(match is_steady {
            Some(is_steady) => row.judged(is_steady),
            None => row,
        });
    }
    Ok(Table { labels: &["export", "account"], columns: &COLUMNS, rows })
}

/// Whether no process took more for the large export. What is not known is not judged.
fn is_steady(small: &Figures, large: &Figures) -> bool {
    PROCESSES.iter().all(|process| {
        let name = format!("{process}_mb");
        small.get(&name).zip(large.get(&name)).is_none_or(|(small, large)| large <= small * LIMIT)
    })
}

async fn one(target: &Target, count: u64, watched: &Watched) -> Result<Figures> {
    let mut request = Vec::new();
    let key = target.keys.first().map(String::as_str);
    Request { method: "GET", target: PATH, key, ..Request::default() }
        .render(&target.authority, &mut request);
    let mut stream = TcpStream::connect(&target.authority).await?;
    let started = Instant::now();
    stream.write_all(&request).await?;
    let (mut buffer, mut read, mut lines, mut tail) = (vec![0; 64 << 10], 0_u64, 0_u64, Vec::new());
    let (mut most, mut looked) = (watched.memory(), Instant::now());
    // The body comes in chunks, whose sizes are lines too: so the lines of the table are counted by how they begin.
    while !tail.ends_with(b"\r\n0\r\n\r\n") {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Err(format!("{PATH} ended early, after {read} bytes").into());
        }
        read += length as u64;
        lines += buffer[..length].iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        tail.extend_from_slice(&buffer[length.saturating_sub(16)..length]);
        tail.drain(..tail.len().saturating_sub(16));
        if looked.elapsed() > LOOK_INTERVAL {
            keep_most(&mut most, watched.memory());
            looked = Instant::now();
        }
    }
    if lines < count {
        return Err(format!("{PATH} has {lines} lines for {count} invoices").into());
    }
    let seconds = started.elapsed().as_secs_f64();
    let mut figures = Figures::default();
    #[expect(clippy::cast_precision_loss, reason = "counts of what fits on a disk")]
    let (invoices, megabytes) = (count as f64, read as f64 / 1e6);
    figures.put("invoices", Some(invoices));
    figures.put("megabytes", Some(megabytes));
    figures.put("seconds", Some(seconds));
    figures.put("rate", Some(invoices / seconds));
    for process in PROCESSES {
        figures.put(format!("{process}_mb"), most.get(process).copied());
    }
    Ok(figures)
}

fn keep_most(most: &mut Memory, now: Memory) {
    for (name, megabytes) in now {
        let have = most.entry(name).or_default();
        *have = have.max(megabytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_that_takes_more_for_more_is_not_steady() {
        let of = |gateway: f64, billing: f64| {
            let mut figures = Figures::default();
            figures.put("gateway_mb", Some(gateway));
            figures.put("billing_mb", Some(billing));
            figures
        };
        assert!(is_steady(&of(20.0, 30.0), &of(24.0, 30.0)));
        assert!(!is_steady(&of(20.0, 30.0), &of(26.0, 30.0)));
        assert!(!is_steady(&of(20.0, 30.0), &of(20.0, 90.0)));
        assert!(is_steady(&Figures::default(), &of(26.0, 30.0)), "where memory cannot be read");
    }
}
