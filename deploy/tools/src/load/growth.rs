//! Whether lists stay as fast when an account grows: the same pages of a small and of a large account of one database,
//! in rounds that take turns, and how many times as much the large one takes.

use std::ops::RangeInclusive;

use deploy_tools::http::authority;
use serde_json::json;

use crate::baseline::Baseline;
use crate::database::Database;
use crate::fill::Reader;
use crate::growth_report::{MISSED, Measured, table};
use crate::invoices::{self, NewInvoices};
use crate::measure;
use crate::operations::{Resource, SEARCHED};
use crate::options::{Growth, Rounds};
use crate::pgbench::{self, Plan};
use crate::process::{LOAD, Watched};
use crate::report::{Circumstances, Figures, publish};
use crate::requests::{Load, Target};

const INVOICES: &str = "/v1/invoices";
const PAGE: u64 = 25;
/// Clients that the invoices of each account are spread over.
const CLIENTS: u128 = 1_000;

/// One of the two accounts.
struct Account {
    target: Target,
    id: String,
    count: u64,
}

/// A page, or several like it, of a list.
struct Position {
    list: &'static str,
    judged: bool,
    load: fn(u64) -> Load,
}

fn pages(count: u64) -> u64 {
    count.div_ceil(PAGE)
}

/// The middle tenth, and not one page: how far a page is from the beginning of its day is a matter of chance.
fn middle(count: u64) -> RangeInclusive<u64> {
    pages(count) * 45 / 100..=pages(count) * 55 / 100
}

const POSITIONS: [Position; 7] = [
    Position { list: "first page", judged: true, load: |_| Load::Path(INVOICES.to_owned()) },
    Position {
        list: "middle page",
        judged: true,
        load: |count| Load::Pages { path: INVOICES, pages: middle(count) },
    },
    Position {
        list: "last page",
        judged: true,
        load: |count| Load::Path(format!("{INVOICES}?page={}", pages(count))),
    },
    Position {
        list: "search, 7 found",
        judged: false,
        load: |_| Load::Path(format!("{INVOICES}?search={SEARCHED}")),
    },
    Position {
        list: "status open, 5 %",
        judged: false,
        load: |_| Load::Path(format!("{INVOICES}?payment_status=open")),
    },
    Position {
        list: "by invoice_date",
        judged: false,
        load: |_| Load::Path(format!("{INVOICES}?sort=invoice_date")),
    },
    Position {
        list: "by due_date",
        judged: false,
        load: |_| Load::Path(format!("{INVOICES}?sort=due_date")),
    },
];

pub(crate) async fn run(options: &Growth) -> Result<(), String> {
    let setup = &options.setup;
    let database = setup.database()?.ok_or("growth needs the database to fill the accounts")?;
    let authority = authority(&setup.base_url)?;
    let account = |key: &str, id: &str, count: u64| {
        let target = Target::new(authority, key);
        Account { target, id: id.to_owned(), count }
    };
    let small = account(&options.small_key, &options.small_account, options.small);
    let large = account(&options.large_key, &options.large_account, options.large);
    for account in [&small, &large] {
        account.fill(&database).await?;
        account.check().await?;
    }
    let bench = Bench {
        options,
        small,
        large,
        baseline: setup.baseline()?,
        watched: Watched { processes: setup.processes.clone(), postmaster: setup.postmaster },
    };
    let mut results = Vec::new();
    for position in &POSITIONS {
        results.push(bench.position(position).await?);
    }
    let circumstances = Circumstances::new(setup);
    let Growth { small, large, rounds, connections, limit, .. } = options;
    let Rounds { count, seconds, .. } = rounds;
    let tables = format!(
        "{}: {small} invoices of one account against {large} of another, medians of {count} rounds of {seconds} s at \
         {connections} connection(s), limit {limit}.\n\n{}",
        circumstances.summary(),
        table(&results, *limit)
    );
    let report = json!({
        "facts": circumstances.facts, "machine": circumstances.machine, "small": small, "large": large,
        "connections": connections, "rounds": count, "seconds": seconds, "limit": limit, "results": results,
    });
    publish(setup, "growth", &report, &tables)?;
    let missed = results.iter().filter(|found| found.verdict(*limit) == MISSED);
    let names: Vec<_> = missed.map(|found| found.list).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(format!("beyond {limit} times the small account: {}", names.join(", ")))
}

impl Account {
    async fn fill(&self, database: &Database) -> Result<(), String> {
        let present = Reader::open(&self.target).await?.total(Resource::Invoice).await?;
        if present > self.count {
            return Err(format!("the account has {present} invoices, which is more than {}", self.count));
        }
        if present == self.count {
            return Ok(());
        }
        let clients: Vec<String> = (1..=CLIENTS).map(|number| format!("{number:032x}")).collect();
        let new = NewInvoices { account: &self.id, clients: &clients, count: self.count - present };
        invoices::fill(database, &new).await
    }

    /// That the pages are what they should be, before anything is measured.
    async fn check(&self) -> Result<(), String> {
        let mut reader = Reader::open(&self.target).await?;
        let last = pages(self.count);
        for page in [1, *middle(self.count).start(), last] {
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
        if found == Some(invoices::MATCHING) { Ok(()) } else { Err(format!("{path} found {found:?}")) }
    }
}

struct Bench<'a> {
    options: &'a Growth,
    small: Account,
    large: Account,
    baseline: Option<Baseline>,
    watched: Watched,
}

impl Bench<'_> {
    async fn position(&self, position: &Position) -> Result<Measured, String> {
        let small_plan = self.plan(position, &self.small).await?;
        let large_plan = self.plan(position, &self.large).await?;
        let mut rounds = Vec::new();
        for number in 1..=self.options.rounds.count {
            let mut figures = Figures::default();
            // The sides of a ratio run next to each other.
            self.rest(position, &self.small, "small", &mut figures).await?;
            self.rest(position, &self.large, "large", &mut figures).await?;
            self.statement(small_plan.as_ref(), "small", &mut figures).await?;
            self.statement(large_plan.as_ref(), "large", &mut figures).await?;
            for figure in ["latency", "cpu", "statement"] {
                let side = |side: &str| figures.get(&format!("{side}_{figure}_ms"));
                let ratio = side("large").zip(side("small")).map(|(large, small)| large / small);
                figures.put(format!("{figure}_ratio"), ratio);
            }
            eprintln!(
                "  {:<17} round {number}/{}: latency x {}, CPU x {}, statement x {}",
                position.list,
                self.options.rounds.count,
                figures.cell("latency_ratio", 2),
                figures.cell("cpu_ratio", 2),
                figures.cell("statement_ratio", 2)
            );
            rounds.push(figures);
        }
        Ok(Measured::new(position.list, position.judged, rounds))
    }

    async fn plan(&self, position: &Position, account: &Account) -> Result<Option<Plan>, String> {
        let Some(baseline) = &self.baseline else { return Ok(None) };
        let words = position.list.split(|letter: char| !letter.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let name = format!("growth-{}-{}", account.count, words.join("-"));
        let load = (position.load)(account.count);
        baseline.plan(&name, Resource::Invoice, &account.target, &load).await.map(Some)
    }

    /// The median latency, and the CPU of gateway, service and database, of a request.
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a run of minutes")]
    async fn rest(
        &self,
        position: &Position,
        account: &Account,
        side: &str,
        figures: &mut Figures,
    ) -> Result<(), String> {
        let load = (position.load)(account.count);
        let outcome = measure::run(
            &account.target,
            &load,
            self.options.rounds.span(self.options.connections),
            &self.watched,
        )
        .await?;
        let spent: u64 = outcome.cpu.iter().filter(|(name, _)| *name != LOAD).map(|(_, ms)| ms).sum();
        figures.put(format!("{side}_latency_ms"), outcome.latencies.percentile(50.0));
        figures.put(format!("{side}_cpu_ms"), (spent > 0).then(|| spent as f64 / outcome.requests()));
        Ok(())
    }

    /// The service's statements alone, run by pgbench.
    async fn statement(&self, plan: Option<&Plan>, side: &str, figures: &mut Figures) -> Result<(), String> {
        let Some((baseline, plan)) = self.baseline.as_ref().zip(plan) else { return Ok(()) };
        let outcome = pgbench::run(
            &baseline.recorder.database,
            plan,
            self.options.rounds.span(self.options.connections),
            &self.watched,
        )
        .await?;
        let rate = outcome.per_second / f64::from(self.options.connections);
        figures.put(format!("{side}_statement_ms"), Some(1000.0 / rate));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middle_and_last_pages_exist_and_are_deep_for_every_allowed_size() {
        for count in [5_000, 10_000, 1_000_000, 1_000_013] {
            let (middle, last) = (middle(count), pages(count));
            assert!(middle.start() < middle.end() && *middle.end() < last, "{count}");
            assert!((last - 1) * PAGE < count && (middle.start() - 1) * PAGE >= 2_000, "{count}");
        }
    }
}
