//! The report of a run: tables of rows with columns. They go to the terminal, to a file as JSON, and into a document
//! between its markers.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::Path;

use deploy_tools::Result;
use serde::Serialize;

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

    /// A figure as text, or a dash when it is not known.
    pub(crate) fn cell(&self, name: &str, decimals: usize) -> String {
        self.get(name).map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
    }

    /// The median of each figure for itself. A ratio's is that of the rounds' ratios: both sides of one ratio ran next to
    /// each other.
    pub(crate) fn median(rounds: &[Self]) -> Self {
        let mut values = BTreeMap::<&String, Vec<f64>>::new();
        for (name, value) in rounds.iter().flat_map(|round| &round.0) {
            values.entry(name).or_default().push(*value);
        }
        let median = |(name, mut values): (&String, Vec<f64>)| {
            values.sort_by(f64::total_cmp);
            let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
            (name.clone(), f64::midpoint(low, high))
        };
        Self(values.into_iter().map(median).collect())
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// What was measured.
    pub labels: Vec<String>,
    pub median: Figures,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'static str>,
}

/// A target that was met.
pub(crate) const OK: &str = "OK";
pub(crate) const MISSED: &str = "MISSED";

impl Row {
    /// The row with its verdict.
    pub(crate) fn judged(self, is_met: bool) -> Self {
        Self { verdict: Some(if is_met { OK } else { MISSED }), ..self }
    }

    pub(crate) fn new(labels: Vec<String>, rounds: Vec<Figures>) -> Self {
        Self { labels, median: Figures::median(&rounds), rounds, verdict: None }
    }
}

/// A column of figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub title: &'static str,
    pub figure: &'static str,
    pub decimals: usize,
}

pub(crate) const fn column(title: &'static str, figure: &'static str, decimals: usize) -> Column {
    Column { title, figure, decimals }
}

#[derive(Debug, Serialize)]
pub(crate) struct Table {
    /// Titles of the labels.
    pub labels: &'static [&'static str],
    #[serde(skip)]
    pub columns: &'static [Column],
    pub rows: Vec<Row>,
}

impl Table {
    /// The first column to the left, the others to the right.
    fn text(&self) -> String {
        let has_verdict = self.rows.iter().any(|row| row.verdict.is_some());
        let titles = self.labels.iter().copied().chain(self.columns.iter().map(|column| column.title));
        let head = titles.chain(has_verdict.then_some("verdict")).map(str::to_owned).collect();
        let row = |row: &Row| {
            let figures = self.columns.iter().map(|column| row.median.cell(column.figure, column.decimals));
            let verdict = has_verdict.then(|| row.verdict.unwrap_or("–").to_owned());
            row.labels.iter().cloned().chain(figures).chain(verdict).collect()
        };
        let mut lines: Vec<Vec<String>> = vec![head];
        lines.extend(self.rows.iter().map(row));
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
        let rule = |(column, width): (usize, &usize)| {
            if column == 0 { "-".repeat(*width) } else { format!("{}:", "-".repeat(width - 1)) }
        };
        lines.insert(1, widths.iter().enumerate().map(rule).collect());
        let cell = |(column, (cell, width)): (usize, (&String, &usize))| {
            if column == 0 { format!("| {cell:<width$} ") } else { format!("| {cell:>width$} ") }
        };
        let line =
            |line: &Vec<String>| line.iter().zip(&widths).enumerate().map(cell).collect::<String>() + "|\n";
        lines.iter().map(line).collect()
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Names the markers in a document: `<!-- part -->` … `<!-- /part -->`.
    #[serde(skip)]
    pub part: &'static str,
    /// How it was measured.
    pub settings: String,
    pub facts: Facts,
    pub tables: Vec<Table>,
}

impl Report {
    /// Prints the tables, and puts them into the files.
    pub(crate) fn publish(&self, json_file: Option<&Path>, document: Option<&Path>) -> Result<()> {
        let tables: Vec<String> = self.tables.iter().map(Table::text).collect();
        let text = format!("{}: {}.\n\n{}", self.facts.summary(), self.settings, tables.join("\n"));
        println!("\n{text}");
        if let Some(file) = json_file {
            let json = serde_json::to_string_pretty(self)?;
            fs::write(file, json + "\n").map_err(in_file(file))?;
            eprintln!("The report is in {}", file.display());
        }
        if let Some(file) = document {
            let old = fs::read_to_string(file).map_err(in_file(file))?;
            fs::write(file, replace(&old, self.part, &text).map_err(in_file(file))?)
                .map_err(in_file(file))?;
            eprintln!("The tables are in {}", file.display());
        }
        Ok(())
    }
}

/// An error when a row has missed its target, so that the exit status says so.
pub(crate) fn require_met(tables: &[Table]) -> Result<()> {
    let rows = tables.iter().flat_map(|table| &table.rows);
    let missed: Vec<String> =
        rows.filter(|row| row.verdict == Some(MISSED)).map(|row| row.labels.join(", ")).collect();
    if missed.is_empty() { Ok(()) } else { Err(format!("missed: {}", missed.join("; ")).into()) }
}

/// An error with the name of its file.
pub(crate) fn in_file<E: Display>(file: &Path) -> impl Fn(E) -> String {
    move |fault| format!("{}: {fault}", file.display())
}

fn replace(document: &str, part: &str, text: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- {part} -->"), format!("<!-- /{part} -->"));
    let missing = || format!("the document has no {begin} … {end}");
    let (before, rest) = document.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    Ok(format!("{before}{begin}\n\n{}\n\n{end}{after}", text.trim()))
}

/// What is known about a run: commit, versions and date from the caller, and the machine as far as it tells.
#[derive(Debug, Serialize)]
pub(crate) struct Facts(pub BTreeMap<String, String>);

impl Facts {
    pub(crate) fn new(told: impl IntoIterator<Item = (String, String)>) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let machine = [
            ("cores", std::thread::available_parallelism().map(|cores| cores.to_string()).ok()),
            ("cpu", field(&read("/proc/cpuinfo"), "model name")),
            ("memory", field(&read("/proc/meminfo"), "MemTotal")),
            ("kernel", Some(read("/proc/sys/kernel/osrelease").trim().to_owned())),
            ("system", Some(format!("{} {}", std::env::consts::OS, std::env::consts::ARCH))),
        ];
        let machine = machine.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Self(machine.chain(told).collect())
    }

    /// When, what and on which machine.
    fn summary(&self) -> String {
        let get = |name: &str| self.0.get(name).map_or("unknown", String::as_str);
        let [date, commit, cores, cpu] = ["date", "commit", "cores", "cpu"].map(get);
        format!("{date}, commit {commit}, {cores} cores, {cpu}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let document = "# A\n<!-- bench -->\nold\n<!-- /bench -->\n<!-- growth -->\n<!-- /growth -->\nend\n";
        let once = replace(document, "bench", "| new |\n").unwrap();
        let expected =
            "# A\n<!-- bench -->\n\n| new |\n\n<!-- /bench -->\n<!-- growth -->\n<!-- /growth -->\nend\n";
        assert_eq!(once, expected);
        assert_eq!(replace(&once, "bench", "| new |\n").unwrap(), once);
        assert!(replace("# A\n<!-- bench -->\n", "bench", "x").is_err());
    }

    fn round(rate: f64, ratio: Option<f64>) -> Figures {
        let mut figures = Figures::default();
        figures.put("rate", Some(rate));
        figures.put("ratio", ratio);
        figures
    }

    #[test]
    fn each_figure_has_its_own_median_of_the_rounds_that_have_it() {
        let median = Figures::median(&[round(900.0, Some(0.2)), round(100.0, None), round(500.0, Some(0.4))]);
        assert_eq!((median.cell("rate", 0), median.cell("ratio", 2)), ("500".to_owned(), "0.30".to_owned()));
    }

    #[test]
    fn a_missed_target_is_an_error_that_names_its_row() {
        let row = |name: &str| Row::new(vec![name.to_owned(), "2".to_owned()], Vec::new());
        let table = |rows| vec![Table { labels: &["name", "replicas"], columns: &[], rows }];
        assert!(require_met(&table(vec![row("read"), row("wait").judged(true)])).is_ok());
        let fault = require_met(&table(vec![row("read").judged(true), row("wait").judged(false)]));
        assert_eq!(fault.unwrap_err().to_string(), "missed: wait, 2");
    }

    #[test]
    fn a_table_shows_figures_and_says_what_is_unknown() {
        const COLUMNS: [Column; 2] = [column("req/s", "rate", 0), column("ratio", "ratio", 2)];
        let rows = vec![
            Row::new(vec!["get".to_owned()], vec![round(8123.4, Some(0.256))]),
            Row { verdict: Some("OK"), ..Row::new(vec!["list".to_owned()], vec![round(7.0, None)]) },
        ];
        let text = Table { labels: &["name"], columns: &COLUMNS, rows }.text();
        let expected = "| name | req/s | ratio | verdict |\n| ---- | ----: | ----: | ------: |\n\
                        | get  |  8123 |  0.26 |       – |\n| list |     7 |     – |      OK |\n";
        assert_eq!(text, expected);
    }
}
