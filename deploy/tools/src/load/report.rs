//! What was found, as data: rounds, and the medians over them. Written as JSON; `table` makes it readable.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::measure;
use crate::operations::Operation;
use crate::pgbench;
use crate::process::{Cpu, Memory};

#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// What the caller knows about this run: commit, versions, time.
    pub facts: BTreeMap<String, String>,
    pub machine: BTreeMap<String, String>,
    pub settings: Settings,
    pub memory_kb: MemoryReport,
    pub results: Vec<Measured>,
}

#[derive(Debug, Default, Serialize)]
pub struct Settings {
    pub clients: u64,
    pub invoices: u64,
    pub deals: u64,
    pub tasks: u64,
    pub tickets: u64,
    pub rounds: u32,
    pub seconds: u64,
    pub warm_up_seconds: u64,
    pub connections: Vec<u32>,
}

/// Resident kilobytes.
#[derive(Debug, Default, Serialize)]
pub struct MemoryReport {
    /// Before anything was asked of the processes.
    pub idle: Memory,
    pub idle_total: u64,
    pub after: Memory,
    pub after_total: u64,
    /// The database cluster after the run, shared buffers counted once.
    pub postgres_after: Option<u64>,
}

/// One operation at one number of connections.
#[derive(Debug, Serialize)]
pub struct Measured {
    pub operation: &'static str,
    /// The service that owns it.
    pub service: &'static str,
    pub connections: u32,
    pub median: Numbers,
    pub rounds: Vec<Numbers>,
}

/// The figures of a round, or their medians.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Numbers {
    pub requests_per_second: f64,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub pgbench_per_second: Option<f64>,
    /// Requests over REST for each transaction of pgbench.
    pub ratio: Option<f64>,
    /// CPU milliseconds for each request, by process.
    pub cpu_ms: BTreeMap<String, f64>,
    /// The same for each transaction of pgbench.
    pub pgbench_cpu_ms: BTreeMap<String, f64>,
}

impl Numbers {
    pub fn new(rest: &measure::Outcome, baseline: Option<&pgbench::Outcome>) -> Self {
        let rate = rest.per_second();
        Self {
            requests_per_second: rate,
            p50_ms: rest.histogram.percentile(50),
            p99_ms: rest.histogram.percentile(99),
            pgbench_per_second: baseline.map(|baseline| baseline.per_second),
            ratio: baseline.map(|baseline| rate / baseline.per_second).filter(|ratio| ratio.is_finite()),
            cpu_ms: each(&rest.cpu, rate * rest.elapsed.as_secs_f64()),
            pgbench_cpu_ms: baseline
                .map(|baseline| each(&baseline.cpu, baseline.transactions))
                .unwrap_or_default(),
        }
    }

    /// The median of each figure for itself. The ratio's is that of the rounds' ratios: both sides of one ratio ran next
    /// to each other.
    pub fn median(rounds: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> Option<f64>| median(rounds.iter().filter_map(figure).collect());
        let by_name = |figure: fn(&Self) -> &BTreeMap<String, f64>| {
            let names = rounds.iter().flat_map(|round| figure(round).keys());
            names
                .filter_map(|name| {
                    let values = rounds.iter().filter_map(|round| figure(round).get(name).copied());
                    Some((name.clone(), median(values.collect())?))
                })
                .collect()
        };
        Self {
            requests_per_second: of(|round| Some(round.requests_per_second)).unwrap_or_default(),
            p50_ms: of(|round| round.p50_ms),
            p99_ms: of(|round| round.p99_ms),
            pgbench_per_second: of(|round| round.pgbench_per_second),
            ratio: of(|round| round.ratio),
            cpu_ms: by_name(|round| &round.cpu_ms),
            pgbench_cpu_ms: by_name(|round| &round.pgbench_cpu_ms),
        }
    }
}

impl Measured {
    pub fn new(operation: Operation, connections: u32, rounds: Vec<Numbers>) -> Self {
        let (name, service) = (operation.name, operation.resource.service());
        Self { operation: name, service, connections, median: Numbers::median(&rounds), rounds }
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a run of minutes")]
fn each(cpu: &Cpu, count: f64) -> BTreeMap<String, f64> {
    if count < 1.0 {
        return BTreeMap::new();
    }
    cpu.iter().map(|(name, spent)| (name.clone(), *spent as f64 / count)).collect()
}

pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// The machine, as far as it tells.
pub fn machine() -> BTreeMap<String, String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map(|cores| cores.to_string()).ok();
    let known = [
        ("cores", cores),
        ("cpu", field(&read("/proc/cpuinfo"), "model name")),
        ("memory", field(&read("/proc/meminfo"), "MemTotal")),
        ("kernel", Some(read("/proc/sys/kernel/osrelease").trim().to_owned())),
        ("system", Some(format!("{} {}", std::env::consts::OS, std::env::consts::ARCH))),
    ];
    known
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value.filter(|value| !value.is_empty())?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(rate: f64, ratio: f64) -> Numbers {
        Numbers {
            requests_per_second: rate,
            ratio: Some(ratio),
            cpu_ms: BTreeMap::from([("gateway".to_owned(), rate / 1000.0)]),
            ..Numbers::default()
        }
    }

    #[test]
    fn each_figure_has_its_own_median() {
        let median = Numbers::median(&[round(900.0, 0.2), round(100.0, 0.9), round(500.0, 0.3)]);
        assert_eq!((median.requests_per_second, median.ratio), (500.0, Some(0.3)));
        assert_eq!(median.cpu_ms.get("gateway"), Some(&0.5));
        assert_eq!(median.pgbench_per_second, None);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn cpu_of_a_round_without_requests_is_unknown() {
        assert!(each(&Cpu::from([("gateway".to_owned(), 30)]), 0.0).is_empty());
        assert_eq!(each(&Cpu::from([("gateway".to_owned(), 30)]), 60.0).get("gateway"), Some(&0.5));
    }
}
