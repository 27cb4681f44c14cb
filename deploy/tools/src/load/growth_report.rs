//! What growth found, as data and as a table.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::report::median;
use crate::table::{aligned, optional};

#[derive(Debug, Serialize)]
pub struct Report {
    pub facts: BTreeMap<String, String>,
    pub machine: BTreeMap<String, String>,
    pub small: u64,
    pub large: u64,
    pub connections: u32,
    pub rounds: u32,
    pub seconds: u64,
    pub limit: f64,
    pub results: Vec<Measured>,
}

#[derive(Debug, Serialize)]
pub struct Measured {
    pub list: &'static str,
    /// Whether the limit is meant for it.
    pub judged: bool,
    pub rounds: Vec<Pair>,
}

/// A figure of the small account, then of the large one, in milliseconds.
pub type Sides = Option<(f64, f64)>;

/// One round.
#[derive(Debug, Default, Serialize)]
pub struct Pair {
    /// The median.
    pub latency: Sides,
    /// CPU of gateway, service and database for each request.
    pub cpu: Sides,
    /// The service's statements alone, run by pgbench.
    pub statement: Sides,
}

type Figure = fn(&Pair) -> Sides;

pub const MISSED: &str = "MISSED";

impl Measured {
    /// How many times as much the large account takes: the median of the rounds' own ratios, since both sides of one
    /// ratio ran next to each other.
    fn ratio(&self, figure: Figure) -> Option<f64> {
        median(self.rounds.iter().filter_map(figure).map(|(small, large)| large / small).collect())
    }

    pub fn verdict(&self, limit: f64) -> &'static str {
        match self.ratio(|pair| pair.latency) {
            _ if !self.judged => "–",
            Some(ratio) if ratio <= limit => "OK",
            _ => MISSED,
        }
    }
}

pub fn render(report: &Report) -> String {
    let head = [
        "list",
        "small ms",
        "large ms",
        "ratio",
        "small CPU",
        "large CPU",
        "ratio",
        "small SQL",
        "large SQL",
        "ratio",
        "verdict",
    ];
    let rows: Vec<Vec<String>> = report
        .results
        .iter()
        .map(|found| {
            let mut cells = vec![found.list.to_owned()];
            let figures: [Figure; 3] = [|pair| pair.latency, |pair| pair.cpu, |pair| pair.statement];
            for figure in figures {
                let side = |side: fn((f64, f64)) -> f64| {
                    median(found.rounds.iter().filter_map(figure).map(side).collect())
                };
                cells.push(optional(side(|pair| pair.0), 2));
                cells.push(optional(side(|pair| pair.1), 2));
                cells.push(optional(found.ratio(figure), 2));
            }
            cells.push(found.verdict(report.limit).to_owned());
            cells
        })
        .collect();
    let fact = |name: &str| report.facts.get(name).map_or("unknown", String::as_str);
    format!(
        "{}, commit {}: {} invoices of one account against {} of another, medians of {} rounds of {} s at {} \
         connection(s), limit {}.\n\n{}",
        fact("date"),
        fact("commit"),
        report.small,
        report.large,
        report.rounds,
        report.seconds,
        report.connections,
        report.limit,
        aligned(&head, &rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(judged: bool, rounds: &[(f64, f64)]) -> Measured {
        let pair = |p50: &(f64, f64)| Pair { latency: Some(*p50), ..Pair::default() };
        Measured { list: "first page", judged, rounds: rounds.iter().map(pair).collect() }
    }

    #[test]
    fn the_verdict_is_that_of_the_median_round() {
        let noisy = measured(true, &[(1.0, 1.1), (1.0, 9.0), (2.0, 2.4)]);
        assert_eq!(noisy.verdict(1.5), "OK");
        assert_eq!(noisy.verdict(1.1), MISSED);
        assert_eq!(measured(false, &[(1.0, 9.0)]).verdict(1.5), "–");
        assert_eq!(measured(true, &[]).verdict(1.5), MISSED, "what was not measured is not fine");
    }
}
