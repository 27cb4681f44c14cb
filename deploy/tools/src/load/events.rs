//! How long it takes from a change to what a flow does about it: clients are made over REST, relations tells automation
//! of them, a flow that waits for that sends a request to this program. First at a pace that leaves time, then as fast as
//! possible.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use chassis_base::Clock;
use deploy_tools::http::{Connection, Request, authority};
use deploy_tools::mesh::{Mesh, service_error};
use deploy_tools::receiver::{Received, Receiver};
use futures::future::{join, join_all};
use proto::automation::ApplyFlowRequest;
use proto::automation::flow_service_client::FlowServiceClient;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{Instant, interval, sleep_until, timeout};

use crate::database::Database;
use crate::latency::Latencies;
use crate::options::Events;
use crate::report::{Circumstances, Figures, aligned, publish};

/// The flow that is measured; switched off again at the end.
const FLOW: &str = "
name: Measured by deploy/bench
trigger: {event: customer.created}
steps:
  - {id: tell, http: {url: RECEIVER, body: {name: '{{ data.company_name }}'}}}
";
/// From the event to its being stored by automation with its run, and from there to the beginning of the run.
const STAGES: [&str; 4] = ["stored_p50_ms", "stored_p99_ms", "begun_p50_ms", "begun_p99_ms"];
/// So long without a request is too long: something does not work.
const EFFECT_TIMEOUT: Duration = Duration::from_mins(1);

/// How fast clients are made.
#[derive(Clone, Copy)]
enum Pace {
    /// So many a second.
    Steady(u32),
    Fastest,
}

pub(crate) async fn run(options: &Events) -> Result<(), String> {
    let (sender, requests) = mpsc::unbounded_channel();
    let receiver =
        Receiver::start(sender).await.map_err(|fault| format!("no port for the receiver: {fault}"))?;
    let mesh = Mesh::new(&options.context_secret, options.account, "bench");
    let flow = FLOW.replace("RECEIVER", &format!("'{}'", receiver.url()));
    apply_flow(options, &mesh, &flow, true).await?;
    let mut bench = Bench {
        options,
        authority: authority(&options.setup.base_url)?,
        database: options.setup.database()?,
        clock: Clock::system(),
        requests,
    };
    let mut results = Vec::new();
    let steady = options.rate * options.seconds;
    for (pace, count) in [(Pace::Steady(options.rate), steady), (Pace::Fastest, options.burst)] {
        results.push(bench.measure(pace, usize::try_from(count).unwrap_or(usize::MAX)).await?);
    }
    apply_flow(options, &mesh, &flow, false).await?;
    let circumstances = Circumstances::new(&options.setup);
    let tables = format!("{}: one account, one flow.\n\n{}", circumstances.summary(), table(&results));
    let report = json!({
        "facts": circumstances.facts, "machine": circumstances.machine, "connections": options.connections,
        "results": results,
    });
    publish(&options.setup, "events", &report, &tables)
}

/// One kind of load.
#[derive(Debug, Serialize)]
struct Measured {
    load: String,
    runs: usize,
    #[serde(flatten)]
    figures: Figures,
}

fn table(results: &[Measured]) -> String {
    let head = [
        "load",
        "runs",
        "made/s",
        "effects/s",
        "stored p50 ms",
        "p99 ms",
        "begun p50 ms",
        "p99 ms",
        "effect p50 ms",
        "p99 ms",
    ];
    let rates = ["made_per_second", "effects_per_second"];
    let rows = results.iter().map(|found| {
        let mut row = vec![found.load.clone(), found.runs.to_string()];
        row.extend(rates.map(|name| found.figures.cell(name, 0)));
        row.extend(STAGES.into_iter().chain(["p50_ms", "p99_ms"]).map(|name| found.figures.cell(name, 1)));
        row
    });
    aligned(&head, &rows.collect::<Vec<_>>())
}

/// Stores the flow and switches it on or off.
async fn apply_flow(options: &Events, mesh: &Mesh, flow: &str, active: bool) -> Result<(), String> {
    let channel = mesh.connect("automation", &format!("http://{}", options.automation)).await?;
    let request = ApplyFlowRequest { definition: flow.to_owned(), active: Some(active) };
    let applied = FlowServiceClient::new(channel).apply_flow(mesh.request(request)?).await;
    applied.map(drop).map_err(service_error("automation"))
}

struct Bench<'a> {
    options: &'a Events,
    authority: &'a str,
    database: Option<Database>,
    clock: Clock,
    requests: UnboundedReceiver<Received>,
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
        let effects = wait_for_effects(&mut self.requests, &progress, &name);
        let (made, effects) = join(join_all(connections), effects).await;
        made.into_iter().collect::<Result<Vec<()>, String>>()?;
        let effects = effects?;
        let answered = progress.answered.take();
        let mut lag = Latencies::new()?;
        for effect in &effects {
            // The effect may be there before the answer.
            let answer = answered.get(effect.number).copied().flatten().unwrap_or(effect.at);
            lag.record(effect.at.saturating_duration_since(answer));
        }
        let seconds = |end: Option<Instant>| end.map(|end| (end - progress.begin).as_secs_f64());
        let rate = |end| seconds(end).filter(|seconds| *seconds > 0.0).map(|seconds| as_f64(count) / seconds);
        let mut figures = self.stages(since).await?;
        figures.put("made_per_second", rate(answered.iter().copied().flatten().max()));
        figures.put("effects_per_second", rate(effects.iter().map(|effect| effect.at).max()));
        figures.put("p50_ms", lag.percentile(50.0));
        figures.put("p99_ms", lag.percentile(99.0));
        Ok(Measured { load: name, runs: count, figures })
    }

    /// Where the time went, as automation's own tables have it.
    async fn stages(&self, since: chrono::DateTime<chrono::Utc>) -> Result<Figures, String> {
        let mut figures = Figures::default();
        let Some(database) = &self.database else { return Ok(figures) };
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
        let values = database.value("automation", &sql).await?;
        for (name, value) in STAGES.iter().zip(values.split('|')) {
            let value = value.parse().map_err(|_| format!("automation has no times of this: {values}"))?;
            figures.put(*name, Some(value));
        }
        Ok(figures)
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

/// The request that the flow sent about a client.
struct Effect {
    number: usize,
    at: Instant,
}

/// Waits for the effect of each client, and says every second how far it is. What was sent twice counts once.
async fn wait_for_effects(
    requests: &mut UnboundedReceiver<Received>,
    progress: &Progress,
    name: &str,
) -> Result<Vec<Effect>, String> {
    let count = progress.answered.borrow().len();
    let mut has_effect = vec![false; count];
    let mut effects = Vec::with_capacity(count);
    let mut second = interval(Duration::from_secs(1));
    while effects.len() < count {
        tokio::select! {
            _ = second.tick() => {
                let made = progress.answered.borrow().iter().flatten().count();
                eprintln!("  {name}: {made} of {count} made, {} effects", effects.len());
            }
            request = timeout(EFFECT_TIMEOUT, requests.recv()) => {
                let missing = || format!("{} of {count} effects did not come in time", count - effects.len());
                let request = request.ok().flatten().ok_or_else(missing)?;
                let number = number_of(&request.body, &progress.series);
                if let Some(number) = number.filter(|number| has_effect.get(*number) == Some(&false)) {
                    has_effect[number] = true;
                    effects.push(Effect { number, at: request.at });
                }
            }
        }
    }
    Ok(effects)
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
