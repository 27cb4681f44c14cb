//! What was found about each operation: rounds, the medians over them, and tables.

use serde::Serialize;

use crate::measure;
use crate::operations::Operation;
use crate::pgbench;
use crate::process::{Cpu, LOAD, Memory, POSTGRES};
use crate::report::{Figures, aligned, cell};

/// One operation at one number of connections.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    pub operation: &'static str,
    /// The service that owns it.
    pub service: &'static str,
    pub connections: u32,
    pub median: Figures,
    pub rounds: Vec<Figures>,
}

impl Measured {
    pub(crate) fn new(operation: Operation, connections: u32, rounds: Vec<Figures>) -> Self {
        let median = Figures::median(&rounds);
        Self { operation: operation.name, service: operation.resource.service(), connections, median, rounds }
    }
}

/// The figures of one round of both sides.
pub(crate) fn figures(rest: &measure::Outcome, replayed: Option<&pgbench::Outcome>) -> Figures {
    let mut figures = Figures::default();
    figures.put("requests_per_second", Some(rest.per_second()));
    figures.put("p50_ms", rest.latencies.percentile(50.0));
    figures.put("p99_ms", rest.latencies.percentile(99.0));
    put_cpu(&mut figures, "cpu_ms", &rest.cpu, rest.requests());
    if let Some(replayed) = replayed {
        figures.put("pgbench_per_second", Some(replayed.per_second));
        figures.put("ratio", Some(rest.per_second() / replayed.per_second));
        put_cpu(&mut figures, "pgbench_cpu_ms", &replayed.cpu, replayed.transactions);
    }
    figures
}

/// CPU milliseconds for each request, by process; unknown without requests.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of a run of minutes")]
fn put_cpu(figures: &mut Figures, name: &str, cpu: &Cpu, requests: f64) {
    for (process, spent) in cpu {
        figures.put(format!("{name}.{process}"), Some(*spent as f64 / requests));
    }
}

pub(crate) fn speed(results: &[Measured]) -> String {
    let head = [
        "operation",
        "connections",
        "req/s",
        "p50 ms",
        "p99 ms",
        "pgbench tps",
        "ratio",
        "gateway CPU ms",
        "service CPU ms",
        "Postgres CPU ms",
        "load CPU ms",
    ];
    let rows = results.iter().map(|measured| {
        let mut row = vec![measured.operation.to_owned(), measured.connections.to_string()];
        let figures = [
            ("requests_per_second", 0),
            ("p50_ms", 2),
            ("p99_ms", 2),
            ("pgbench_per_second", 0),
            ("ratio", 2),
        ];
        row.extend(figures.map(|(name, decimals)| measured.median.cell(name, decimals)));
        let processes = ["gateway", measured.service, POSTGRES, LOAD];
        row.extend(processes.map(|process| measured.median.cell(&format!("cpu_ms.{process}"), 3)));
        row
    });
    aligned(&head, &rows.collect::<Vec<_>>())
}

/// Resident kilobytes.
#[derive(Debug, Default, Serialize)]
pub(crate) struct MemoryReport {
    /// Before anything was asked of the processes.
    pub idle: Memory,
    pub after: Memory,
    /// The database cluster after the run, shared buffers counted once.
    pub postgres_after: Option<u64>,
}

impl MemoryReport {
    pub(crate) fn table(&self) -> String {
        let after = |name| self.after.get(name).copied();
        let mut rows: Vec<Vec<String>> =
            self.idle.iter().map(|(name, idle)| memory_row(name, Some(*idle), after(name))).collect();
        let sum = |memory: &Memory| Some(memory.values().sum());
        rows.push(memory_row("together", sum(&self.idle), sum(&self.after)));
        rows.push(memory_row(POSTGRES, None, self.postgres_after));
        aligned(&["resident memory", "idle MB", "after the run MB"], &rows)
    }
}

#[expect(clippy::cast_precision_loss, reason = "kilobytes of a process")]
fn memory_row(name: &str, idle: Option<u64>, after: Option<u64>) -> Vec<String> {
    let megabytes = |kilobytes: Option<u64>| cell(kilobytes.map(|kilobytes| kilobytes as f64 / 1024.0), 1);
    vec![name.to_owned(), megabytes(idle), megabytes(after)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_figures_and_says_what_is_unknown() {
        let mut figures = Figures::default();
        figures.put("requests_per_second", Some(8123.4));
        figures.put("ratio", Some(0.256));
        let text = speed(&[Measured::new("get".parse().unwrap(), 32, vec![figures])]);
        let row = text.lines().find(|line| line.starts_with("| get")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[1..9], ["get", "32", "8123", "–", "–", "–", "0.26", "–"]);
    }
}
