//! What all reports share: the circumstances, medians, tables, and where results go: to the terminal, to a file as JSON,
//! and into a document between its markers.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use crate::options::Setup;

/// What is known about a run.
#[derive(Debug, Default)]
pub(crate) struct Circumstances {
    /// What the caller knows: commit, versions, time.
    pub facts: BTreeMap<String, String>,
    pub machine: BTreeMap<String, String>,
}

impl Circumstances {
    pub(crate) fn new(setup: &Setup) -> Self {
        let facts = setup.facts.iter().map(|fact| (fact.name.clone(), fact.value.clone()));
        Self { facts: facts.collect(), machine: machine() }
    }

    /// When, what and on which machine.
    pub(crate) fn summary(&self) -> String {
        let [date, commit, cores, cpu] = ["date", "commit", "cores", "cpu"].map(|name| self.get(name));
        format!("{date}, commit {commit}, {cores} cores, {cpu}")
    }

    pub(crate) fn get(&self, name: &str) -> &str {
        self.facts.get(name).or_else(|| self.machine.get(name)).map_or("unknown", String::as_str)
    }
}

/// `part` names the markers in the document: `<!-- part -->` … `<!-- /part -->`.
pub(crate) fn publish(
    setup: &Setup,
    part: &str,
    report: &impl Serialize,
    tables: &str,
) -> Result<(), String> {
    println!("\n{tables}");
    if let Some(file) = &setup.out {
        let json = serde_json::to_string_pretty(report).map_err(|fault| fault.to_string())?;
        std::fs::write(file, json + "\n").map_err(|fault| format!("{}: {fault}", file.display()))?;
        eprintln!("The report is in {}", file.display());
    }
    if let Some(file) = &setup.readme {
        let shown = |fault: &dyn std::fmt::Display| format!("{}: {fault}", file.display());
        let document = std::fs::read_to_string(file).map_err(|fault| shown(&fault))?;
        let document = replace(&document, part, tables).map_err(|fault| shown(&fault))?;
        std::fs::write(file, document).map_err(|fault| shown(&fault))?;
        eprintln!("The tables are in {}", file.display());
    }
    Ok(())
}

fn replace(document: &str, part: &str, tables: &str) -> Result<String, String> {
    let (begin, end) = (format!("<!-- {part} -->"), format!("<!-- /{part} -->"));
    let missing = || format!("the document has no {begin} … {end}");
    let (before, rest) = document.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    Ok(format!("{before}{begin}\n\n{}\n\n{end}{after}", tables.trim()))
}

/// Named figures of a round, or their medians.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Figures(BTreeMap<String, f64>);

impl Figures {
    /// A figure that is not known, or not a number, is left out.
    pub(crate) fn put(&mut self, name: impl Into<String>, value: Option<f64>) {
        self.0.extend(value.filter(|value| value.is_finite()).map(|value| (name.into(), value)));
    }

    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// For a table.
    pub(crate) fn cell(&self, name: &str, decimals: usize) -> String {
        cell(self.get(name), decimals)
    }

    /// The median of each figure for itself. A ratio's is that of the rounds' ratios: both sides of one ratio ran next to
    /// each other.
    pub(crate) fn median(rounds: &[Self]) -> Self {
        let mut names: Vec<&String> = rounds.iter().flat_map(|round| round.0.keys()).collect();
        names.dedup();
        let median = |name: &&String| {
            let mut values: Vec<f64> = rounds.iter().filter_map(|round| round.get(name)).collect();
            values.sort_by(f64::total_cmp);
            let middle = values.len() / 2;
            if values.len() % 2 == 1 {
                values[middle]
            } else {
                f64::midpoint(values[middle - 1], values[middle])
            }
        };
        Self(names.iter().map(|name| ((*name).clone(), median(name))).collect())
    }
}

/// The machine, as far as it tells.
fn machine() -> BTreeMap<String, String> {
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

/// A figure, or a dash when it is not known.
pub(crate) fn cell(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

/// The first column to the left, figures to the right.
pub(crate) fn aligned(head: &[&str], rows: &[Vec<String>]) -> String {
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    let mut widths: Vec<usize> = head.iter().map(|name| name.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    let mut line = |cells: &[String]| {
        for (column, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
            let _ = if column == 0 {
                write!(text, "| {cell:<width$} ")
            } else {
                write!(text, "| {cell:>width$} ")
            };
        }
        text.push_str("|\n");
    };
    line(&head);
    let rule = |(column, width): (usize, &usize)| {
        if column == 0 { "-".repeat(*width) } else { format!("{}:", "-".repeat(width - 1)) }
    };
    line(&widths.iter().enumerate().map(rule).collect::<Vec<_>>());
    for row in rows {
        line(row);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let document = "# A\n<!-- bench -->\nold\n<!-- /bench -->\n<!-- growth -->\n<!-- /growth -->\nend\n";
        let once = replace(document, "bench", "| new |\n").unwrap();
        assert_eq!(
            once,
            "# A\n<!-- bench -->\n\n| new |\n\n<!-- /bench -->\n<!-- growth -->\n<!-- /growth -->\nend\n"
        );
        assert_eq!(replace(&once, "bench", "| new |\n").unwrap(), once);
        assert!(replace("# A\n<!-- bench -->\n", "bench", "x").is_err());
    }

    #[test]
    fn each_figure_has_its_own_median_of_the_rounds_that_have_it() {
        let round = |rate: f64, ratio: Option<f64>| {
            let mut figures = Figures::default();
            figures.put("rate", Some(rate));
            figures.put("ratio", ratio);
            figures
        };
        let median = Figures::median(&[round(900.0, Some(0.2)), round(100.0, None), round(500.0, Some(0.4))]);
        assert_eq!(median.get("rate"), Some(500.0));
        assert_eq!((median.cell("ratio", 2), median.cell("unknown", 2)), ("0.30".to_owned(), "–".to_owned()));
    }

    #[test]
    fn every_line_of_a_table_has_the_same_width() {
        let table =
            aligned(&["operation", "x"], &[vec!["a".into(), "–".into()], vec!["b".into(), "1234".into()]]);
        let widths: Vec<usize> = table.lines().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{table}");
    }
}
