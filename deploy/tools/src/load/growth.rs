//! Whether lists stay as fast when an account grows: the same pages of a small and of a large account of one database,
//! in rounds that take turns, and how many times as much the large one takes.

use std::sync::Arc;
use std::time::Duration;

use deploy_tools::http::authority;

use crate::database::Database;
use crate::documents;
use crate::fill::Reader;
use crate::growth_report::{MISSED, Measured, Pair, Report, Sides, render};
use crate::measure::{self, Span};
use crate::operations::{Resource, SEARCHED};
use crate::options::Growth;
use crate::pgbench::{self, Plan, Scripts};
use crate::process::{LOAD, Watched};
use crate::publish;
use crate::report;
use crate::requests::{Load, Target};
use crate::table::optional;

const INVOICES: &str = "/v1/invoices";
const PAGE: u64 = 25;
/// Clients that the invoices of each account are spread over.
const CLIENTS: u128 = 1_000;

/// One of the two accounts.
struct Account {
    target: Arc<Target>,
    id: String,
    count: u64,
}

/// A page, or several like it, of a list.
struct Position {
    list: &'static str,
    judged: bool,
    load: fn(u64) -> Load,
    /// The script with the statements, and the first and last page that is asked for.
    script: Option<(&'static str, Asked)>,
}

type Asked = fn(u64) -> (u64, u64);

fn pages(count: u64) -> u64 {
    count.div_ceil(PAGE)
}

/// The middle tenth, and not one page: how far a page is from the beginning of its day is a matter of chance.
fn middle(count: u64) -> (u64, u64) {
    (pages(count) * 45 / 100, pages(count) * 55 / 100)
}

fn last(count: u64) -> (u64, u64) {
    (pages(count), pages(count))
}

fn first(_: u64) -> (u64, u64) {
    (1, 1)
}

const POSITIONS: [Position; 7] = [
    Position {
        list: "first page",
        judged: true,
        load: |_| Load::Path(INVOICES.to_owned()),
        script: Some(("invoice-list", first)),
    },
    Position {
        list: "middle page",
        judged: true,
        load: |count| Load::Pages { path: INVOICES, pages: middle(count).0..=middle(count).1 },
        script: Some(("invoice-page", middle)),
    },
    Position {
        list: "last page",
        judged: true,
        load: |count| Load::Path(format!("{INVOICES}?page={}", pages(count))),
        script: Some(("invoice-page", last)),
    },
    Position {
        list: "search, 7 found",
        judged: false,
        load: |_| Load::Path(format!("{INVOICES}?search={SEARCHED}")),
        script: Some(("invoice-search", first)),
    },
    Position {
        list: "status open, 5 %",
        judged: false,
        load: |_| Load::Path(format!("{INVOICES}?payment_status=open")),
        script: Some(("invoice-open", first)),
    },
    Position {
        list: "by invoice_date",
        judged: false,
        load: |_| Load::Path(format!("{INVOICES}?sort=invoice_date")),
        script: None,
    },
    Position {
        list: "by due_date",
        judged: false,
        load: |_| Load::Path(format!("{INVOICES}?sort=due_date")),
        script: None,
    },
];

pub async fn run(options: &Growth) -> Result<(), String> {
    let place = &options.place;
    let billing = place.database(Resource::Invoice)?;
    let billing = billing.ok_or("growth needs the database of billing to fill the accounts")?;
    let authority = authority(&place.base_url)?;
    let account = |key: &str, id: &str, count: u64| {
        let target = Arc::new(Target::new(authority.to_owned(), key.to_owned()));
        Account { target, id: id.to_owned(), count }
    };
    let small = account(&options.small_key, &options.small_account, options.small);
    let large = account(&options.large_key, &options.large_account, options.large);
    for account in [&small, &large] {
        account.fill(&billing).await?;
        account.check().await?;
    }
    let bench = Bench {
        options,
        small,
        large,
        scripts: Scripts::new(&place.scripts, &place.work)?,
        billing,
        watched: Watched::new(place.processes.clone(), place.postmaster),
    };
    let mut results = Vec::new();
    for position in &POSITIONS {
        results.push(bench.position(position).await?);
    }
    let report = Report {
        facts: place.facts.iter().cloned().collect(),
        machine: report::machine(),
        small: options.small,
        large: options.large,
        connections: options.connections,
        rounds: options.rounds,
        seconds: options.seconds,
        limit: options.limit,
        results,
    };
    publish::publish(place, "growth", &report, &render(&report))?;
    let missed: Vec<_> =
        report.results.iter().filter(|found| found.verdict(report.limit) == MISSED).collect();
    if missed.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missed.iter().map(|found| found.list).collect();
    Err(format!("beyond {} times the small account: {}", report.limit, names.join(", ")))
}

impl Account {
    async fn fill(&self, billing: &Database) -> Result<(), String> {
        let present = Reader::open(&self.target).await?.total(Resource::Invoice).await?;
        if present > self.count {
            return Err(format!("the account has {present} invoices, which is more than {}", self.count));
        }
        if present == self.count {
            return Ok(());
        }
        let clients: Vec<String> = (1..=CLIENTS).map(|number| format!("{number:032x}")).collect();
        let wanted = documents::Wanted { account: &self.id, clients: &clients, count: self.count - present };
        documents::fill(billing, &wanted).await
    }

    /// That the pages are what they should be, before anything is measured.
    async fn check(&self) -> Result<(), String> {
        let mut reader = Reader::open(&self.target).await?;
        let (last, middle) = (pages(self.count), middle(self.count).0);
        for page in [1, middle, last] {
            let answer = reader.get(&format!("{INVOICES}?page={page}")).await?;
            let rows = answer["data"].as_array().map_or(0, Vec::len) as u64;
            let total = answer["meta"]["total"].as_u64();
            let expected = if page == last { self.count - (last - 1) * PAGE } else { PAGE };
            if rows != expected || total != Some(self.count) {
                return Err(format!(
                    "page {page} of {last} should have {expected} of {} invoices, but has {rows} of {total:?}",
                    self.count
                ));
            }
        }
        let path = format!("{INVOICES}?search={SEARCHED}");
        let found = reader.get(&path).await?["meta"]["total"].as_u64();
        if found == Some(documents::MATCHING) { Ok(()) } else { Err(format!("{path} found {found:?}")) }
    }
}

struct Bench<'a> {
    options: &'a Growth,
    small: Account,
    large: Account,
    scripts: Scripts,
    billing: Database,
    watched: Watched,
}

impl Bench<'_> {
    async fn position(&self, position: &Position) -> Result<Measured, String> {
        let mut rounds = Vec::new();
        for round in 1..=self.options.rounds {
            let small = self.rest(position, &self.small).await?;
            let large = self.rest(position, &self.large).await?;
            let mut pair = Pair { latency: small.0.zip(large.0), cpu: small.1.zip(large.1), statement: None };
            if position.script.is_some() {
                let small = self.statement(position, &self.small).await?;
                pair.statement = small.zip(self.statement(position, &self.large).await?);
            }
            let (name, of) = (position.list, self.options.rounds);
            let shown = |pair: Sides| optional(pair.map(|(small, large)| large / small), 2);
            eprintln!(
                "  {name:<17} round {round}/{of}: latency x {}, CPU x {}, statement x {}",
                shown(pair.latency),
                shown(pair.cpu),
                shown(pair.statement)
            );
            rounds.push(pair);
        }
        Ok(Measured { list: position.list, judged: position.judged, rounds })
    }

    fn span(&self) -> Span {
        Span {
            connections: self.options.connections,
            warm_up: Duration::from_secs(self.options.warm_up),
            measured: Duration::from_secs(self.options.seconds),
        }
    }

    /// The median latency, and the CPU of a request.
    #[expect(clippy::cast_precision_loss, reason = "milliseconds and requests of a run of minutes")]
    async fn rest(
        &self,
        position: &Position,
        account: &Account,
    ) -> Result<(Option<f64>, Option<f64>), String> {
        let load = (position.load)(account.count);
        let outcome = measure::run(&account.target, &load, self.span(), &self.watched).await?;
        let spent: u64 = outcome.cpu.iter().filter(|(name, _)| *name != LOAD).map(|(_, ms)| ms).sum();
        let known = spent > 0 && outcome.requests > 0;
        Ok((outcome.histogram.percentile(50), known.then(|| spent as f64 / outcome.requests as f64)))
    }

    /// Milliseconds of the statements alone.
    async fn statement(&self, position: &Position, account: &Account) -> Result<Option<f64>, String> {
        let Some((script, asked)) = position.script else { return Ok(None) };
        let (low, high) = asked(account.count);
        let copy =
            self.scripts.copy(script, &format!("growth-{script}"), &[(":limit", &PAGE.to_string())])?;
        let variables = [
            ("account", account.id.clone()),
            ("kind", "invoice".to_owned()),
            ("list", "invoice".to_owned()),
            ("all_days", "0001-01-01".to_owned()),
            ("status", "open".to_owned()),
            ("pattern", format!("%{SEARCHED}%")),
            ("low", low.to_string()),
            ("high", high.to_string()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value)).into();
        let plan = Plan { files: vec![copy], variables };
        let outcome = pgbench::run(&self.billing, &plan, self.span(), &self.watched).await?;
        let rate = outcome.per_second / f64::from(self.options.connections);
        Ok((rate > 0.0).then(|| 1000.0 / rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middle_and_last_pages_exist_and_are_deep_for_every_allowed_size() {
        for count in [5_000, 10_000, 1_000_000, 1_000_013] {
            let ((low, high), (last, _)) = (middle(count), last(count));
            assert!(low < high && high < last && (last - 1) * PAGE < count, "{count}");
            // From this offset on the service looks up the day first, which is what the script does.
            assert!((low - 1) * PAGE >= 2_000, "{count}");
        }
    }
}
