//! Whether lists stay as fast when an account grows: the same pages of a small and of a large account of one database,
//! in rounds that take turns, and how many times as much the large one takes. Then whether an export of all of them takes
//! the same memory.

use std::ops::RangeInclusive;
use std::time::Duration;

use deploy_tools::Result;
use deploy_tools::http::authority;

use crate::bench::{Bench, Case};
use crate::clients;
use crate::database::Database;
use crate::export::{self, Exported};
use crate::fill::{self, CHANGED_INVOICES, SEARCHED_INVOICES};
use crate::operations::{Catalogue, INVOICE, List, SEARCHED};
use crate::options::Growth;
use crate::report::{Column, Figures, MISSED, OK, Row, Table, column};
use crate::requests::{Load, Target};

const PAGE: u64 = 25;
/// Clients that the invoices of each account are spread over.
const CLIENTS: u128 = 1_000;
/// A list is prepared when so many looks in a row find nothing new.
const UNCHANGED_LOOKS: u32 = 3;
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

const COLUMNS: [Column; 9] = [
    column("small ms", "small_p50_ms", 2),
    column("large ms", "large_p50_ms", 2),
    column("ratio", "p50_ms_ratio", 2),
    column("small CPU", "small_all_cpu_ms", 2),
    column("large CPU", "large_all_cpu_ms", 2),
    column("ratio", "all_cpu_ms_ratio", 2),
    column("small SQL", "small_pgbench_ms", 2),
    column("large SQL", "large_pgbench_ms", 2),
    column("ratio", "pgbench_ms_ratio", 2),
];

fn pages(count: u64) -> u64 {
    count.div_ceil(PAGE)
}

/// The middle tenth, and not one page: how far a page is from the end of its segment is a matter of chance.
fn middle(count: u64) -> RangeInclusive<u64> {
    pages(count) * 45 / 100..=pages(count) * 55 / 100
}

/// One of the two accounts.
struct Account {
    /// As in the names of figures.
    name: &'static str,
    target: Target,
    count: u64,
    /// The time since which [`CHANGED_INVOICES`] were changed.
    recent: String,
}

pub(crate) async fn run(options: &Growth) -> Result<()> {
    let (setup, catalogue) = (&options.setup, Catalogue::read()?);
    let database = setup.database()?.ok_or("growth needs the database to fill the accounts")?;
    let authority = authority(&setup.base_url)?;
    let account = |name, key: &str, count| {
        let target = Target::new(authority, key);
        Account { name, target, count, recent: String::new() }
    };
    let mut accounts = [
        account("small", &options.small_key, options.small),
        account("large", &options.large_key, options.large),
    ];
    let clients: Vec<String> = (1..=CLIENTS).map(|number| format!("{number:032x}")).collect();
    for (account, id) in accounts.iter_mut().zip([&options.small_account, &options.large_account]) {
        fill::invoices(&account.target, account.count, &database, id, &clients, options.days).await?;
        account.check().await?;
        account.recent = recent(&account.target).await?;
        account.prepare(&catalogue.growth, &database, id).await?;
    }
    let service = catalogue.resource(INVOICE).service.as_str();
    let (rounds, baseline, watched) = (&options.rounds, setup.baseline()?, setup.watched());
    let bench = Bench { rounds, account: &options.small_account, baseline, watched };
    let mut rows = Vec::new();
    for list in &catalogue.growth {
        let mut cases = Vec::new();
        for Account { name, target, count, recent } in &accounts {
            let load = load(list, *count, recent);
            let script = format!("growth-{count}-{}", list.name.replace([' ', ',', '%'], "-"));
            let plan = bench.plan(&script, service, target, &load).await?;
            let labels = vec![list.name.clone(), (*name).to_owned()];
            cases.push(Case { labels, target, load, service, connections: options.connections, plan });
        }
        let of_accounts = bench.run(&cases).await?;
        let rounds = of_accounts[0].rounds.iter().zip(&of_accounts[1].rounds);
        let rounds = rounds.map(|(small, large)| compared(small, large)).collect();
        let row = Row::new(vec![list.name.clone()], rounds);
        rows.push(Row { verdict: list.judged.then(|| verdict(&row.median, options.limit)), ..row });
    }
    let exported = accounts.each_ref().map(|Account { name, target, count, .. }| Exported {
        name,
        target,
        count: *count,
    });
    let exports = export::measure(exported, &bench.watched).await?;
    let missed: Vec<String> = rows
        .iter()
        .chain(&exports.rows)
        .filter(|row| row.verdict == Some(MISSED))
        .map(|row| row.labels.join(" "))
        .collect();
    let Growth { small, large, days, rounds, connections, limit, .. } = options;
    let settings = format!(
        "{small} invoices of one account against {large} of another, made on {days} day(s), {rounds} at {connections} \
         connection(s), limit {limit}"
    );
    setup.publish("growth", settings, vec![Table { labels: &["list"], columns: &COLUMNS, rows }, exports])?;
    if missed.is_empty() {
        return Ok(());
    }
    Err(format!("too much beyond the small account: {}", missed.join(", ")).into())
}

impl Account {
    /// That everything is there and is found, before anything is measured.
    async fn check(&self) -> Result<()> {
        let search = format!("?search={SEARCHED}");
        for (query, expected) in [("?page=1", self.count), (&search, SEARCHED_INVOICES)] {
            let answer = clients::get(&self.target, &format!("/v1/invoices{query}")).await?;
            let total = &answer["meta"]["total"];
            if total.as_u64() != Some(expected) {
                return Err(format!("/v1/invoices{query} has {total} in place of {expected}").into());
            }
        }
        Ok(())
    }

    /// Reads every list until the service has made the segments and counters that it makes after such reads.
    async fn prepare(&self, lists: &[List], database: &Database, id: &str) -> Result<()> {
        let made = format!(
            "select (select count(*) from list_segment where account_id = '{id}') \
             + (select count(*) from prepared_list where account_id = '{id}')"
        );
        let (mut before, mut unchanged) = (0, 0);
        while unchanged < UNCHANGED_LOOKS {
            for list in lists {
                clients::get(&self.target, &load(list, self.count, &self.recent).path).await?;
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
            let now = database.number("billing", &made).await?;
            unchanged = if now == before { unchanged + 1 } else { 0 };
            before = now;
        }
        Ok(())
    }
}

/// When the earliest of the last changes was made. Old invoices were changed as well, so it is not the order of creation
/// that finds them.
async fn recent(target: &Target) -> Result<String> {
    let path = format!("/v1/invoices?sort=updated_at&per_page={CHANGED_INVOICES}");
    let answer = clients::get(target, &path).await?;
    let last = answer["data"].as_array().and_then(|invoices| invoices.last());
    let time = last.and_then(|invoice| invoice["meta"]["updated_at"].as_str());
    Ok(time.ok_or_else(|| format!("{path} does not show when its invoices were changed"))?.to_owned())
}

fn load(list: &List, count: u64, recent: &str) -> Load {
    let middle = middle(count);
    let path = list.path.replace("<middle>", &format!("<{}..{}>", middle.start(), middle.end()));
    Load::get(&path.replace("<last>", &pages(count).to_string()).replace("<recent>", recent))
}

/// A round of both accounts, and how many times as much the large one takes.
fn compared(small: &Figures, large: &Figures) -> Figures {
    let mut figures = Figures::default();
    for name in ["p50_ms", "all_cpu_ms", "pgbench_ms"] {
        let (small, large) = (small.get(name), large.get(name));
        figures.put(format!("small_{name}"), small);
        figures.put(format!("large_{name}"), large);
        figures.put(format!("{name}_ratio"), large.zip(small).map(|(large, small)| large / small));
    }
    figures
}

fn verdict(median: &Figures, limit: f64) -> &'static str {
    if median.get("p50_ms_ratio").is_some_and(|ratio| ratio <= limit) { OK } else { MISSED }
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

    #[test]
    fn the_verdict_is_that_of_the_median_round() {
        let median = |ratios: &[f64]| {
            let round = |ratio: &f64| {
                let mut figures = Figures::default();
                figures.put("p50_ms_ratio", Some(*ratio));
                figures
            };
            Figures::median(&ratios.iter().map(round).collect::<Vec<_>>())
        };
        let noisy = median(&[1.1, 9.0, 1.2]);
        assert_eq!((verdict(&noisy, 1.5), verdict(&noisy, 1.1)), (OK, MISSED));
        assert_eq!(verdict(&median(&[]), 1.5), MISSED, "what was not measured is not fine");
    }
}
