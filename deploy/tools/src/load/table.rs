//! The report for people: Markdown tables that also read well in a terminal.

use std::fmt::Write;

use crate::process::{LOAD, POSTGRES};
use crate::report::{Measured, Report};

pub fn render(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}\n", circumstances(report));
    text.push_str(&speed(&report.results));
    if !report.memory_kb.idle.is_empty() {
        text.push('\n');
        text.push_str(&memory(report));
    }
    text
}

fn circumstances(report: &Report) -> String {
    let known = |name: &str| report.facts.get(name).or_else(|| report.machine.get(name));
    let mut parts = Vec::new();
    for (name, before, after) in [
        ("date", "", ""),
        ("commit", "commit ", ""),
        ("cores", "", " cores"),
        ("cpu", "", ""),
        ("postgres", "PostgreSQL ", ""),
    ] {
        if let Some(value) = known(name) {
            parts.push(format!("{before}{value}{after}"));
        }
    }
    let settings = &report.settings;
    parts.push(format!(
        "{} clients, {} invoices, {} deals, {} tasks, {} tickets, medians of {} rounds of {} s",
        settings.clients,
        settings.invoices,
        settings.deals,
        settings.tasks,
        settings.tickets,
        settings.rounds,
        settings.seconds
    ));
    format!("{}.", parts.join(", "))
}

fn speed(results: &[Measured]) -> String {
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
        let numbers = &measured.median;
        let cpu = |name: &str| optional(numbers.cpu_ms.get(name).copied(), 3);
        vec![
            measured.operation.to_owned(),
            measured.connections.to_string(),
            format!("{:.0}", numbers.requests_per_second),
            optional(numbers.p50_ms, 2),
            optional(numbers.p99_ms, 2),
            optional(numbers.pgbench_per_second, 0),
            optional(numbers.ratio, 2),
            cpu("gateway"),
            cpu(measured.service),
            cpu(POSTGRES),
            cpu(LOAD),
        ]
    });
    aligned(&head, &rows.collect::<Vec<_>>())
}

fn memory(report: &Report) -> String {
    let memory = &report.memory_kb;
    let mut rows: Vec<Vec<String>> = memory
        .idle
        .iter()
        .map(|(name, idle)| {
            vec![name.clone(), megabytes(Some(*idle)), megabytes(memory.after.get(name).copied())]
        })
        .collect();
    rows.push(vec![
        "together".to_owned(),
        megabytes(Some(memory.idle_total)),
        megabytes(Some(memory.after_total)),
    ]);
    rows.push(vec![POSTGRES.to_owned(), "–".to_owned(), megabytes(memory.postgres_after)]);
    aligned(&["resident memory", "idle MB", "after the run MB"], &rows)
}

#[expect(clippy::cast_precision_loss, reason = "kilobytes of a process")]
fn megabytes(kilobytes: Option<u64>) -> String {
    optional(kilobytes.map(|kilobytes| kilobytes as f64 / 1024.0), 1)
}

pub fn optional(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

/// The first column to the left, figures to the right.
pub fn aligned(head: &[&str], rows: &[Vec<String>]) -> String {
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
    use crate::report::Numbers;

    fn report() -> Report {
        let numbers = Numbers { requests_per_second: 8123.4, ratio: Some(0.256), ..Numbers::default() };
        let mut report = Report {
            results: vec![Measured::new("get".parse().unwrap(), 32, vec![numbers])],
            ..Report::default()
        };
        report.memory_kb.idle.insert("gateway".to_owned(), 12_288);
        report.memory_kb.idle_total = 12_288;
        report
    }

    #[test]
    fn the_table_shows_figures_and_says_what_is_unknown() {
        let text = render(&report());
        let row = text.lines().find(|line| line.starts_with("| get")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[1..8], ["get", "32", "8123", "–", "–", "–", "0.26"]);
        assert!(text.contains("| gateway") && text.contains("12.0"), "{text}");
    }

    #[test]
    fn every_line_of_a_table_has_the_same_width() {
        let table =
            aligned(&["operation", "x"], &[vec!["a".into(), "–".into()], vec!["b".into(), "1234".into()]]);
        let widths: Vec<usize> = table.lines().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{table}");
    }
}
