//! What was found about events, as data and as a table.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::table::{aligned, optional};

#[derive(Debug, Serialize)]
pub struct Report {
    pub facts: BTreeMap<String, String>,
    pub machine: BTreeMap<String, String>,
    pub connections: u32,
    pub results: Vec<Measured>,
}

#[derive(Debug, Serialize)]
pub struct Measured {
    pub load: String,
    pub runs: usize,
    /// Clients, until the last answer.
    pub made_per_second: Option<f64>,
    /// First effects, until the last one.
    pub effects_per_second: Option<f64>,
    pub stages: Option<Stages>,
    /// From the answer about the client to the request of its run.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

/// In milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Stages {
    /// From the event to its being stored by automation, with its run.
    pub stored_p50: f64,
    pub stored_p99: f64,
    /// From there to the beginning of the run.
    pub begun_p50: f64,
    pub begun_p99: f64,
}

pub fn render(report: &Report) -> String {
    let head = [
        "load",
        "runs",
        "made/s",
        "effects/s",
        "stored p50 ms",
        "p99 ms",
        "begun p50 ms",
        "p99 ms",
        "effect p50 ms",
        "p99 ms",
    ];
    let rows = report.results.iter().map(|found| {
        let stage = |of: fn(&Stages) -> f64| optional(found.stages.as_ref().map(of), 1);
        vec![
            found.load.clone(),
            found.runs.to_string(),
            optional(found.made_per_second, 0),
            optional(found.effects_per_second, 0),
            stage(|stages| stages.stored_p50),
            stage(|stages| stages.stored_p99),
            stage(|stages| stages.begun_p50),
            stage(|stages| stages.begun_p99),
            optional(found.p50_ms, 1),
            optional(found.p99_ms, 1),
        ]
    });
    let known = |name: &str| report.facts.get(name).or_else(|| report.machine.get(name));
    let fact = |name: &str| known(name).map_or("unknown", String::as_str);
    format!(
        "{}, commit {}, {} cores, {}: one account, one flow.\n\n{}",
        fact("date"),
        fact("commit"),
        fact("cores"),
        fact("cpu"),
        aligned(&head, &rows.collect::<Vec<_>>())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_figures_and_says_what_is_unknown() {
        let measured = Measured {
            load: "20 a second".to_owned(),
            runs: 600,
            made_per_second: Some(20.04),
            effects_per_second: Some(19.96),
            stages: None,
            p50_ms: Some(12.34),
            p99_ms: None,
        };
        let report = Report {
            facts: BTreeMap::new(),
            machine: BTreeMap::new(),
            connections: 32,
            results: vec![measured],
        };
        let text = render(&report);
        let row = text.lines().find(|line| line.starts_with("| 20 a second")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[1..11], ["20 a second", "600", "20", "20", "–", "–", "–", "–", "12.3", "–"]);
    }
}
