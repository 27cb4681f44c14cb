//! The change feed: how many changes a second one reader reads from the beginning to the end, and how soon a reader that
//! waits has a change. The second also with two processes of each program, where the write and the reader use different
//! gateways.

use std::cell::RefCell;

use chassis_base::Clock;
use deploy_tools::Result;
use deploy_tools::http::authority;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::clients::{self, Answered, Reader, Schedule};
use crate::fill;
use crate::measure::Latencies;
use crate::operations::{CLIENT, Catalogue};
use crate::options::Changes;
use crate::process::{Cpu, LOAD, POSTGRES, Watched, spent};
use crate::report::{Column, Figures, Row, Table, column, require_met};
use crate::requests::{Load, Target};

/// The most that one answer has.
const LIMIT: u32 = 500;
/// Seconds that a reader waits for a change before it gets an empty answer.
const WAIT: u32 = 20;
const GATEWAY: &str = "gateway";

const READING: [Column; 6] = [
    column("changes/s", "changes_per_second", 0),
    column("page p50 ms", "page_p50_ms", 1),
    column("page p99 ms", "page_p99_ms", 1),
    column("gateway CPU ms", "gateway_cpu_ms", 1),
    column("services CPU ms", "services_cpu_ms", 1),
    column("Postgres CPU ms", "postgres_cpu_ms", 1),
];
const WAITING: [Column; 3] =
    [column("p50 ms", "p50_ms", 1), column("p99 ms", "p99_ms", 1), column("max ms", "max_ms", 1)];

/// An answer of the feed.
#[derive(Debug, Deserialize)]
struct Page<T> {
    data: Vec<T>,
    meta: Meta,
}

#[derive(Debug, Deserialize)]
struct Meta {
    cursor: String,
    #[serde(default)]
    more: bool,
}

#[derive(Debug, Deserialize)]
struct Change {
    #[serde(default)]
    record: Value,
}

/// A copy of the mesh: who writes and who reads.
struct Mesh {
    replicas: u32,
    writer: Target,
    reader: Target,
}

impl Mesh {
    fn new(replicas: u32, url: &str, reader_url: &str, key: &str) -> Result<Self> {
        let target = |url| Ok::<_, String>(Target::new(authority(url)?, key));
        Ok(Self { replicas, writer: target(url)?, reader: target(reader_url)? })
    }

    /// Those that the options name.
    fn all(options: &Changes) -> Result<Vec<Self>> {
        let url = &options.setup.base_url;
        let reader_url = options.reader_url.as_ref().unwrap_or(url);
        let mut all = vec![Self::new(options.replicas, url, reader_url, &options.key)?];
        let second = options.second_url.as_ref().zip(options.second_reader_url.as_ref());
        if let Some(((url, reader_url), key)) = second.zip(options.second_key.as_ref()) {
            all.push(Self::new(2, url, reader_url, key)?);
        }
        Ok(all)
    }
}

pub(crate) async fn run(options: &Changes) -> Result<()> {
    let setup = &options.setup;
    let mut meshes = Mesh::all(options)?;
    fill::over_rest(&mut meshes[0].writer, &Catalogue::read()?, CLIENT, options.records).await?;
    let reading = read_everything(&meshes[0].writer, options, &setup.watched()).await?;
    let mut waiting = Vec::new();
    for mesh in &meshes {
        waiting.push(wait_for_changes(mesh, options).await?);
    }
    let tables = [
        Table { labels: &["reading", "changes"], columns: &READING, rows: vec![reading] },
        Table { labels: &["waiting", "processes of each", "changes"], columns: &WAITING, rows: waiting },
    ];
    let Changes { rounds, rate, limit_rate, limit_ms, .. } = options;
    let settings = format!(
        "one account; reading: the median of {rounds} rounds with {LIMIT} changes a page, at least {limit_rate} a second; \
         waiting: {rate} writes a second, p99 at most {limit_ms} ms"
    );
    let missed = require_met(&tables);
    setup.publish("changes", settings, tables.into())?;
    missed
}

/// From the first change to the last, again and again.
async fn read_everything(target: &Target, options: &Changes, watched: &Watched) -> Result<Row> {
    let mut reader = Reader::open(target).await?;
    let mut total = 0;
    let mut rounds = Vec::new();
    // The first one warms up.
    for number in 0..=options.rounds {
        let pages = Latencies::new()?;
        let (before, begin) = (watched.cpu(), Instant::now());
        total = read_to_end(&mut reader, &mut String::new(), &pages).await?;
        let seconds = begin.elapsed().as_secs_f64();
        let count = f64::from(total);
        let mut figures = cpu_of(&spent(&before, &watched.cpu()), count / 1000.0);
        figures.put("changes_per_second", Some(count / seconds));
        figures.put("page_p50_ms", pages.quantile_ms(0.5));
        figures.put("page_p99_ms", pages.quantile_ms(0.99));
        let rate = figures.cell("changes_per_second", 0);
        eprintln!("  round {number}/{}: {total} changes, {rate} a second", options.rounds);
        if number > 0 {
            rounds.push(figures);
        }
    }
    if u64::from(total) < options.records {
        return Err(format!("the feed has {total} changes after {} were made", options.records).into());
    }
    let row = Row::new(vec!["from the beginning".to_owned(), total.to_string()], rounds);
    let rate = row.median.get("changes_per_second");
    Ok(row.judged(rate.is_some_and(|rate| rate >= options.limit_rate)))
}

/// Milliseconds for each of `parts`.
fn cpu_of(cpu: &Cpu, parts: f64) -> Figures {
    let sum = |is_wanted: &dyn Fn(&str) -> bool| {
        let wanted: Vec<f64> =
            cpu.iter().filter(|(name, _)| is_wanted(name.as_str())).map(|(_, ms)| *ms).collect();
        (!wanted.is_empty()).then(|| wanted.iter().sum::<f64>() / parts)
    };
    let mut figures = Figures::default();
    figures.put("gateway_cpu_ms", sum(&|name| name == GATEWAY));
    figures.put("services_cpu_ms", sum(&|name| ![GATEWAY, POSTGRES, LOAD].contains(&name)));
    figures.put("postgres_cpu_ms", sum(&|name| name == POSTGRES));
    figures
}

/// An empty cursor is the beginning.
fn path(cursor: &str, wait: Option<u32>) -> String {
    let mut path = format!("/v1/changes?limit={LIMIT}");
    path.extend(wait.map(|wait| format!("&wait={wait}")));
    if !cursor.is_empty() {
        path.extend(["&after=", cursor]);
    }
    path
}

/// Returns how many changes there were after the cursor, which is moved to the end.
async fn read_to_end(reader: &mut Reader<'_>, cursor: &mut String, pages: &Latencies) -> Result<u32> {
    let mut count = 0;
    loop {
        let sent = Instant::now();
        let page: Page<IgnoredAny> = serde_json::from_slice(reader.get(&path(cursor, None)).await?)?;
        pages.record(sent.elapsed());
        count += u32::try_from(page.data.len())?;
        *cursor = page.meta.cursor;
        if !page.meta.more {
            return Ok(count);
        }
    }
}

/// Makes clients at a rate, and measures from the answer about each until a reader that waits has the change.
async fn wait_for_changes(mesh: &Mesh, options: &Changes) -> Result<Row> {
    let count = options.rate * options.seconds;
    // Tells apart the clients of this measurement.
    let series = format!("bench-{}", Clock::system().id().simple());
    let body = json!({"company_name": format!("{series}-<number>")}).to_string();
    let load = Load { body, success: 201, ..Load::get("/v1/clients") };
    let answers = RefCell::new(vec![None; usize::try_from(count)?]);
    let record = |answered: Answered| {
        answers.borrow_mut()[usize::try_from(answered.number).unwrap_or(0)] = Some(answered.at);
    };
    let mut reader = Reader::open(&mesh.reader).await?;
    let mut cursor = String::new();
    read_to_end(&mut reader, &mut cursor, &Latencies::new()?).await?;
    eprintln!("  a reader waits for {count} changes, {} of each program", mesh.replicas);
    let schedule = Schedule::Each { numbers: 0..u64::from(count), rate: Some(options.rate) };
    let made = clients::run(&mesh.writer, &load, options.connections, &schedule, record);
    let seen = wait_for_series(&mut reader, cursor, &series, usize::try_from(count)?);
    let ((), seen) = futures::try_join!(made, seen)?;
    let lag = Latencies::new()?;
    for (seen, answer) in seen.iter().zip(answers.take()) {
        // The change may be there before the answer.
        lag.record(
            answer.and_then(|answer| seen.as_ref()?.checked_duration_since(answer)).unwrap_or_default(),
        );
    }
    let mut figures = Figures::default();
    for (name, quantile) in [("p50_ms", 0.5), ("p99_ms", 0.99), ("max_ms", 1.0)] {
        figures.put(name, lag.quantile_ms(quantile));
    }
    let labels = vec!["from the answer".to_owned(), mesh.replicas.to_string(), count.to_string()];
    let row = Row::new(labels, vec![figures]);
    let p99 = row.median.get("p99_ms");
    Ok(row.judged(p99.is_some_and(|p99| p99 <= options.limit_ms)))
}

/// When the reader has had each change of the series.
async fn wait_for_series(
    reader: &mut Reader<'_>,
    mut cursor: String,
    series: &str,
    count: usize,
) -> Result<Vec<Option<Instant>>> {
    let (mut seen, mut left) = (vec![None; count], count);
    while left > 0 {
        let body = reader.get(&path(&cursor, Some(WAIT))).await?;
        let at = Instant::now();
        let page: Page<Change> = serde_json::from_slice(body)?;
        if page.data.is_empty() && !page.meta.more {
            return Err(format!("{left} of {count} changes did not come within {WAIT} s").into());
        }
        for number in page.data.iter().filter_map(|change| number_of(&change.record, series)) {
            if let Some(first @ None) = seen.get_mut(number) {
                *first = Some(at);
                left -= 1;
            }
        }
        cursor = page.meta.cursor;
    }
    Ok(seen)
}

/// Which client of the series a record is.
fn number_of(record: &Value, series: &str) -> Option<usize> {
    record["company_name"].as_str()?.strip_prefix(series)?.strip_prefix('-')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_the_feed_is_read() {
        let text = r#"{"data": [{"kind": "client", "record": {"company_name": "bench-1-42"}}, {"record": null}],
                       "meta": {"cursor": "AQ", "more": false}}"#;
        let page: Page<Change> = serde_json::from_str(text).unwrap();
        let numbers: Vec<_> = page.data.iter().map(|change| number_of(&change.record, "bench-1")).collect();
        assert_eq!(numbers, [Some(42), None]);
        assert_eq!((page.meta.cursor.as_str(), page.meta.more), ("AQ", false));
        assert_eq!(number_of(&page.data[0].record, "bench-12"), None);
    }

    #[test]
    fn services_are_all_that_is_neither_gateway_nor_database_nor_this_program() {
        let names =
            [("gateway", 8.0), ("relations", 2.0), ("billing", 1.0), ("postgres", 5.0), ("load", 99.0)];
        let cpu = names.into_iter().map(|(name, ms)| (name.to_owned(), ms)).collect();
        let figures = cpu_of(&cpu, 2.0);
        let cells =
            ["gateway_cpu_ms", "services_cpu_ms", "postgres_cpu_ms"].map(|name| figures.cell(name, 1));
        assert_eq!(cells, ["4.0", "1.5", "2.5"]);
        assert_eq!(cpu_of(&Cpu::new(), 2.0).cell("gateway_cpu_ms", 1), "–");
    }
}
