//! Loads over REST and the same by pgbench, in rounds that take turns.

use deploy_tools::Result;

use crate::baseline::Baseline;
use crate::measure::{self, Outcome};
use crate::options::Rounds;
use crate::pgbench::{self, Plan};
use crate::process::{LOAD, Watched};
use crate::report::{Figures, Row};
use crate::requests::{ACCOUNT, Load, Target};

/// What makes a row of a report.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub labels: Vec<String>,
    pub target: &'a Target,
    pub load: Load,
    /// The service that does the work.
    pub service: &'a str,
    pub connections: u32,
    /// What pgbench runs.
    pub plan: Option<Plan>,
}

#[derive(Debug)]
pub(crate) struct Bench<'a> {
    pub rounds: &'a Rounds,
    /// Whose events are waited for, unless a target names its accounts.
    pub account: &'a str,
    pub baseline: Option<Baseline>,
    pub watched: Watched,
}

impl Bench<'_> {
    /// Records what pgbench runs for a load.
    pub(crate) async fn plan(
        &self,
        name: &str,
        service: &str,
        target: &Target,
        load: &Load,
    ) -> Result<Option<Plan>> {
        let Some(baseline) = &self.baseline else { return Ok(None) };
        // Also of what was filled in: delivering events would be part of the recording's pauses and of the first round.
        baseline.drain_events(service, &self.accounts(target)).await?;
        baseline.plan(name, service, target, load).await.map(Some)
    }

    fn accounts<'t>(&'t self, target: &'t Target) -> Vec<&'t str> {
        let named = target.ids(ACCOUNT);
        if named.is_empty() { vec![self.account] } else { named.iter().map(String::as_str).collect() }
    }

    /// All rounds of some cases, first over REST and then by pgbench, so that what is compared ran next to each other and a
    /// machine that slows down slows both.
    pub(crate) async fn run(&self, cases: &[Case<'_>]) -> Result<Vec<Row>> {
        let mut rounds = vec![Vec::new(); cases.len()];
        for number in 1..=self.rounds.count {
            let mut figures = Vec::new();
            for case in cases {
                figures.push(self.over_rest(case).await?);
            }
            for (case, figures) in cases.iter().zip(&mut figures) {
                self.by_pgbench(case, figures).await?;
            }
            for ((case, figures), rounds) in cases.iter().zip(figures).zip(&mut rounds) {
                eprintln!(
                    "  {:<22} round {number}/{}: {:>6} req/s, pgbench {:>6}, ratio {}",
                    case.labels.join(", "),
                    self.rounds.count,
                    figures.cell("requests_per_second", 0),
                    figures.cell("pgbench_per_second", 0),
                    figures.cell("ratio", 2)
                );
                rounds.push(figures);
            }
        }
        Ok(cases.iter().zip(rounds).map(|(case, rounds)| Row::new(case.labels.clone(), rounds)).collect())
    }

    async fn over_rest(&self, case: &Case<'_>) -> Result<Figures> {
        let span = self.rounds.span(case.connections);
        let outcome = measure::run(case.target, &case.load, span, &self.watched).await?;
        let mut figures = Figures::default();
        figures.put("requests_per_second", Some(outcome.per_second));
        figures.put("p50_ms", outcome.p50_ms);
        figures.put("p99_ms", outcome.p99_ms);
        put_cpu(&mut figures, "cpu_ms", &outcome);
        figures.put("service_cpu_ms", figures.get(&format!("cpu_ms.{}", case.service)));
        // Of gateway, services and database.
        let all: f64 = outcome.cpu.iter().filter(|(name, _)| *name != LOAD).map(|(_, ms)| ms).sum();
        figures.put("all_cpu_ms", (all > 0.0).then_some(all / outcome.requests));
        Ok(figures)
    }

    async fn by_pgbench(&self, case: &Case<'_>, figures: &mut Figures) -> Result<()> {
        let Some((baseline, plan)) = self.baseline.as_ref().zip(case.plan.as_ref()) else { return Ok(()) };
        let writes = !case.load.body.is_empty();
        if writes {
            baseline.drain_events(case.service, &self.accounts(case.target)).await?;
        }
        let outcome = pgbench::run(plan, self.rounds.span(case.connections), &self.watched).await?;
        if writes {
            baseline.remove_events(case.service).await?;
        }
        figures.put("pgbench_per_second", Some(outcome.per_second));
        figures.put("pgbench_ms", Some(1000.0 * f64::from(case.connections) / outcome.per_second));
        let ratio = figures.get("requests_per_second").map(|rest| rest / outcome.per_second);
        figures.put("ratio", ratio);
        put_cpu(figures, "pgbench_cpu_ms", &outcome);
        Ok(())
    }
}

/// CPU milliseconds for each request, by process; unknown without requests.
fn put_cpu(figures: &mut Figures, name: &str, outcome: &Outcome) {
    for (process, ms) in &outcome.cpu {
        figures.put(format!("{name}.{process}"), Some(ms / outcome.requests));
    }
}
