//! What growth found: rounds, the medians over them, and a verdict.

use serde::Serialize;

use crate::report::{Figures, aligned};

pub(crate) const MISSED: &str = "MISSED";

#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    pub list: &'static str,
    /// Whether the limit is meant for it.
    judged: bool,
    median: Figures,
    rounds: Vec<Figures>,
}

impl Measured {
    pub(crate) fn new(list: &'static str, judged: bool, rounds: Vec<Figures>) -> Self {
        Self { list, judged, median: Figures::median(&rounds), rounds }
    }

    pub(crate) fn verdict(&self, limit: f64) -> &'static str {
        match self.median.get("latency_ratio") {
            _ if !self.judged => "–",
            Some(ratio) if ratio <= limit => "OK",
            _ => MISSED,
        }
    }
}

pub(crate) fn table(results: &[Measured], limit: f64) -> String {
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
    let rows = results.iter().map(|found| {
        let mut row = vec![found.list.to_owned()];
        for figure in ["latency", "cpu", "statement"] {
            let names =
                [format!("small_{figure}_ms"), format!("large_{figure}_ms"), format!("{figure}_ratio")];
            row.extend(names.iter().map(|name| found.median.cell(name, 2)));
        }
        row.push(found.verdict(limit).to_owned());
        row
    });
    aligned(&head, &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(judged: bool, ratios: &[f64]) -> Measured {
        let round = |ratio: &f64| {
            let mut figures = Figures::default();
            figures.put("latency_ratio", Some(*ratio));
            figures
        };
        Measured::new("first page", judged, ratios.iter().map(round).collect())
    }

    #[test]
    fn the_verdict_is_that_of_the_median_round() {
        let noisy = measured(true, &[1.1, 9.0, 1.2]);
        assert_eq!((noisy.verdict(1.5), noisy.verdict(1.1)), ("OK", MISSED));
        assert_eq!(measured(false, &[9.0]).verdict(1.5), "–");
        assert_eq!(measured(true, &[]).verdict(1.5), MISSED, "what was not measured is not fine");
    }
}
