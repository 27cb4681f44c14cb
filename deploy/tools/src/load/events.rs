//! How long it takes from a change to what a flow does about it: clients are made over REST, relations tells automation
//! of them, a flow that waits for that sends a request to this program. First at a pace that leaves time, then as fast as
//! possible.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use chassis_base::Clock;
use deploy_tools::http::{Connection, Request, authority};
use deploy_tools::mesh::{Mesh, said};
use deploy_tools::receiver::{Received, Receiver};
use futures::future::{join, join_all};
use proto::automation::ApplyFlowRequest;
use proto::automation::flow_service_client::FlowServiceClient;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{Instant, interval, sleep_until, timeout};

use crate::database::Database;
use crate::events_report::{Measured, Report, Stages, render};
use crate::histogram::Histogram;
use crate::options::Events;
use crate::{publish, report};

/// The flow that is measured; switched off again at the end.
const FLOW: &str = "
name: Measured by deploy/bench
trigger: {event: customer.created}
steps:
  - {id: tell, http: {url: RECEIVER, body: {name: '{{ data.company_name }}'}}}
";
/// So long without a request is too long: something does not work.
const PATIENCE: Duration = Duration::from_mins(1);

/// How fast clients are made.
#[derive(Clone, Copy)]
enum Pace {
    /// So many a second.
    Steady(u32),
    Fastest,
}

pub async fn run(options: &Events) -> Result<(), String> {
    let (tell, heard) = mpsc::unbounded_channel();
    let receiver = Receiver::start(tell).await.map_err(|fault| format!("no port to hear at: {fault}"))?;
    let mesh = Mesh::new(&options.context_secret, options.account, "bench");
    let flow = FLOW.replace("RECEIVER", &format!("'{}'", receiver.url()));
    switch(options, &mesh, (&flow, true)).await?;
    let mut bench = Bench {
        options,
        authority: authority(&options.place.base_url)?,
        database: options.database()?,
        clock: Clock::system(),
        heard,
    };
    let mut results = Vec::new();
    let steady = options.rate * options.seconds;
    for (pace, count) in [(Pace::Steady(options.rate), steady), (Pace::Fastest, options.burst)] {
        results.push(bench.measure(pace, usize::try_from(count).unwrap_or(usize::MAX)).await?);
    }
    switch(options, &mesh, (&flow, false)).await?;
    let report = Report {
        facts: options.place.facts.iter().cloned().collect(),
        machine: report::machine(),
        connections: options.connections,
        results,
    };
    publish::publish(&options.place, "events", &report, &render(&report))
}

/// Stores the flow and switches it on or off.
async fn switch(options: &Events, mesh: &Mesh, (flow, active): (&str, bool)) -> Result<(), String> {
    let channel = mesh.connect("automation", &format!("http://{}", options.automation)).await?;
    let request = ApplyFlowRequest { definition: flow.to_owned(), active: Some(active) };
    let applied = FlowServiceClient::new(channel).apply_flow(mesh.request(request)?).await;
    applied.map(drop).map_err(said("automation"))
}

struct Bench<'a> {
    options: &'a Events,
    authority: &'a str,
    database: Option<Database>,
    clock: Clock,
    heard: UnboundedReceiver<Received>,
}

/// What the connections of one measurement share.
struct Progress {
    /// Makes names and keys those of this measurement.
    series: String,
    begin: Instant,
    next: Cell<usize>,
    /// When each client was acknowledged.
    answered: RefCell<Vec<Option<Instant>>>,
}

impl Bench<'_> {
    async fn measure(&mut self, pace: Pace, count: usize) -> Result<Measured, String> {
        let since = self.clock.now();
        let progress = Progress {
            series: format!("bench-{}", self.clock.id().simple()),
            begin: Instant::now(),
            next: Cell::new(0),
            answered: RefCell::new(vec![None; count]),
        };
        let connections =
            (0..self.options.connections).map(|_| make(self.options, self.authority, pace, &progress));
        let name = match pace {
            Pace::Steady(rate) => format!("{rate} a second"),
            Pace::Fastest => format!("{} connections", self.options.connections),
        };
        let (made, heard) =
            join(join_all(connections), hear(&mut self.heard, &progress, (&name, count))).await;
        made.into_iter().collect::<Result<Vec<()>, String>>()?;
        let heard = heard?;
        let answered = progress.answered.take();
        let mut lag = Histogram::default();
        for (number, at) in &heard {
            // The effect may be there before the answer.
            let answer = answered.get(*number).copied().flatten().unwrap_or(*at);
            lag.record(at.saturating_duration_since(answer));
        }
        let seconds = |end: Option<Instant>| end.map(|end| (end - progress.begin).as_secs_f64());
        let rate = |end| seconds(end).filter(|seconds| *seconds > 0.0).map(|seconds| as_f64(count) / seconds);
        Ok(Measured {
            load: name,
            runs: count,
            made_per_second: rate(answered.iter().copied().flatten().max()),
            effects_per_second: rate(heard.iter().map(|(_, at)| *at).max()),
            stages: self.stages(since).await?,
            p50_ms: lag.percentile(50),
            p99_ms: lag.percentile(99),
        })
    }

    /// Where the time went, as automation's own tables have it.
    async fn stages(&self, since: chrono::DateTime<chrono::Utc>) -> Result<Option<Stages>, String> {
        let Some(database) = &self.database else { return Ok(None) };
        let (account, since) = (self.options.account, since.to_rfc3339());
        let spans = |of: &str, table: &str, begin: &str| {
            format!(
                "select percentile_cont(array[0.5, 0.99]) within group
                    (order by (extract(epoch from {of} - {begin}) * 1000)::float8) as p
                 from automation.{table} where account_id = '{account}' and {begin} >= '{since}'"
            )
        };
        let sql = format!(
            "select stored.p[1], stored.p[2], begun.p[1], begun.p[2] from ({}) stored, ({}) begun",
            spans("received_at", "event", "occurred_at"),
            spans("started_at", "run", "created_at")
        );
        let values = database.value(&sql).await?;
        let figures: Vec<f64> = values.split('|').filter_map(|value| value.parse().ok()).collect();
        let [stored_p50, stored_p99, begun_p50, begun_p99] = figures[..] else {
            return Err(format!("automation has no times of this: {values}"));
        };
        Ok(Some(Stages { stored_p50, stored_p99, begun_p50, begun_p99 }))
    }
}

/// One connection: makes the next client that nobody has made yet, until there is none.
async fn make(options: &Events, authority: &str, pace: Pace, progress: &Progress) -> Result<(), String> {
    let unreachable = |fault: std::io::Error| format!("{authority}: {fault}");
    let mut connection = Connection::open(authority).await.map_err(unreachable)?;
    let mut message = Vec::new();
    loop {
        let number = progress.next.replace(progress.next.get() + 1);
        if number >= progress.answered.borrow().len() {
            return Ok(());
        }
        if let Pace::Steady(rate) = pace {
            let due = Duration::from_secs(1) / rate * u32::try_from(number).unwrap_or(u32::MAX);
            sleep_until(progress.begin + due).await;
        }
        let name = format!("{}-{number}", progress.series);
        let body = json!({"company_name": name}).to_string();
        let request = Request {
            method: "POST",
            target: "/v1/clients",
            key: Some(&options.key),
            idempotency_key: Some(&name),
            body: Some(&body),
        };
        message.clear();
        request.render(authority, &mut message);
        let answer = connection.send(&message).await.map_err(unreachable)?;
        if answer.status != 201 {
            return Err(format!("POST /v1/clients was answered with {}: {}", answer.status, answer.text()));
        }
        progress.answered.borrow_mut()[number] = Some(Instant::now());
    }
}

/// Waits for the effect of each client, and tells every second how far it is. Returns which was heard when; each once.
async fn hear(
    heard: &mut UnboundedReceiver<Received>,
    progress: &Progress,
    (name, count): (&str, usize),
) -> Result<Vec<(usize, Instant)>, String> {
    let (mut seen, mut found) = (vec![false; count], Vec::with_capacity(count));
    let mut second = interval(Duration::from_secs(1));
    while found.len() < count {
        tokio::select! {
            _ = second.tick() => {
                let made = progress.answered.borrow().iter().flatten().count();
                eprintln!("  {name}: {made} of {count} made, {} heard of", found.len());
            }
            received = timeout(PATIENCE, heard.recv()) => {
                let silent = || format!("{} of {count} effects were not had in time", count - found.len());
                let received = received.ok().flatten().ok_or_else(silent)?;
                let number = number_of(&received.body, &progress.series);
                // What was sent twice counts once.
                if let Some(number) = number.filter(|number| seen.get(*number) == Some(&false)) {
                    seen[number] = true;
                    found.push((number, received.at));
                }
            }
        }
    }
    Ok(found)
}

/// Which client of the series a request is about.
fn number_of(body: &[u8], series: &str) -> Option<usize> {
    let body: Value = serde_json::from_slice(body).ok()?;
    body["name"].as_str()?.strip_prefix(series)?.strip_prefix('-')?.parse().ok()
}

#[expect(clippy::cast_precision_loss, reason = "at most some millions")]
fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_of_the_measurement_count() {
        assert_eq!(number_of(br#"{"name": "bench-1-42"}"#, "bench-1"), Some(42));
        assert_eq!(number_of(br#"{"name": "bench-12-42"}"#, "bench-1"), None);
        assert_eq!(number_of(b"{}", "bench-1"), None);
    }
}
