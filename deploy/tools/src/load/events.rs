//! How long it takes from a change to what a flow does about it: clients are made over REST, relations tells automation
//! of them, a flow that waits for that sends a request to this program. First at a pace that leaves time, then as fast as
//! possible.

use std::cell::RefCell;
use std::time::Duration;

use chassis_base::Clock;
use deploy_tools::Result;
use deploy_tools::http::authority;
use deploy_tools::mesh::{MeshCaller, service_error};
use deploy_tools::receiver::{Received, Receiver};
use proto::automation::ApplyFlowRequest;
use proto::automation::flow_service_client::FlowServiceClient;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{Instant, interval, timeout};

use crate::clients::{self, Answered, Schedule};
use crate::database::Database;
use crate::measure::Latencies;
use crate::options::Events;
use crate::report::{Column, Figures, Row, Table, column};
use crate::requests::{Load, Target};

/// The flow that is measured; switched off again at the end.
const FLOW: &str = "
name: Measured by deploy/bench
trigger: {event: customer.created}
steps:
  - {id: tell, http: {url: RECEIVER, body: {name: '{{ data.company_name }}'}}}
";
/// So long without a request is too long: something does not work.
const EFFECT_TIMEOUT: Duration = Duration::from_mins(1);

const COLUMNS: [Column; 8] = [
    column("made/s", "made_per_second", 0),
    column("effects/s", "effects_per_second", 0),
    column("stored p50 ms", "stored_p50_ms", 1),
    column("p99 ms", "stored_p99_ms", 1),
    column("begun p50 ms", "begun_p50_ms", 1),
    column("p99 ms", "begun_p99_ms", 1),
    column("effect p50 ms", "effect_p50_ms", 1),
    column("p99 ms", "effect_p99_ms", 1),
];

pub(crate) async fn run(options: &Events) -> Result<()> {
    let (sender, requests) = mpsc::unbounded_channel();
    let receiver =
        Receiver::start(sender).await.map_err(|fault| format!("no port for the receiver: {fault}"))?;
    let mesh = MeshCaller::new(&options.context_secret, options.account, "bench");
    let flow = FLOW.replace("RECEIVER", &format!("'{}'", receiver.url()));
    apply_flow(options, &mesh, &flow, true).await?;
    let mut bench = Bench {
        options,
        target: Target::new(authority(&options.setup.base_url)?, &options.key),
        database: options.setup.database()?,
        clock: Clock::system(),
        requests,
    };
    let (rate, steady) = (options.rate, options.rate * options.seconds);
    let rows = vec![
        bench.measure(&format!("{rate} a second"), steady, Some(rate)).await?,
        bench.measure(&format!("{} connections", options.connections), options.burst, None).await?,
    ];
    apply_flow(options, &mesh, &flow, false).await?;
    let table = Table { labels: &["load", "runs"], columns: &COLUMNS, rows };
    options.setup.publish("events", "one account, one flow".to_owned(), vec![table])
}

/// Stores the flow and switches it on or off.
async fn apply_flow(options: &Events, mesh: &MeshCaller, flow: &str, active: bool) -> Result<()> {
    let channel = mesh.connect("automation", &format!("http://{}", options.automation)).await?;
    let request = ApplyFlowRequest { definition: flow.to_owned(), active: Some(active) };
    let applied = FlowServiceClient::new(channel).apply_flow(mesh.request(request)?).await;
    Ok(applied.map(drop).map_err(service_error("automation"))?)
}

struct Bench<'a> {
    options: &'a Events,
    target: Target,
    database: Option<Database>,
    clock: Clock,
    requests: UnboundedReceiver<Received>,
}

impl Bench<'_> {
    /// Makes so many clients, at a rate or as fast as possible, and waits for the effect of each.
    async fn measure(&mut self, name: &str, count: u32, rate: Option<u32>) -> Result<Row> {
        let since = self.clock.now();
        // Tells apart the clients of this measurement.
        let series = format!("bench-{}", self.clock.id().simple());
        let body = json!({"company_name": format!("{series}-<number>")}).to_string();
        let load = Load { body, success: 201, ..Load::get("/v1/clients") };
        let answers = RefCell::new(vec![None; usize::try_from(count).unwrap_or(0)]);
        let record = |answered: Answered| {
            answers.borrow_mut()[usize::try_from(answered.number).unwrap_or(0)] = Some(answered.at);
        };
        let schedule = Schedule::Each { numbers: 0..u64::from(count), rate };
        let begin = Instant::now();
        let made = clients::run(&self.target, &load, self.options.connections, &schedule, record);
        let effects = wait_for_effects(&mut self.requests, &series, &answers, name);
        let ((), effects) = futures::try_join!(made, effects)?;
        let answers = answers.take();
        let lag = Latencies::new()?;
        for (effect, answer) in effects.iter().zip(&answers) {
            // The effect may be there before the answer.
            lag.record(
                answer.and_then(|answer| effect.as_ref()?.checked_duration_since(answer)).unwrap_or_default(),
            );
        }
        let rate = |moments: &[Option<Instant>]| {
            let end = moments.iter().flatten().max()?;
            Some(f64::from(count) / (*end - begin).as_secs_f64())
        };
        let mut figures = self.stages(since).await?;
        figures.put("made_per_second", rate(&answers));
        figures.put("effects_per_second", rate(&effects));
        figures.put("effect_p50_ms", lag.quantile_ms(0.5));
        figures.put("effect_p99_ms", lag.quantile_ms(0.99));
        Ok(Row::new(vec![name.to_owned(), count.to_string()], vec![figures]))
    }

    /// Where the time went, as automation's own tables have it: from the event to its being stored with its run, and from
    /// there to the beginning of the run.
    async fn stages(&self, since: chrono::DateTime<chrono::Utc>) -> Result<Figures> {
        let mut figures = Figures::default();
        let Some(database) = &self.database else { return Ok(figures) };
        let (account, since) = (self.options.account, since.to_rfc3339());
        let stages =
            [("stored", "received_at", "event", "occurred_at"), ("begun", "started_at", "run", "created_at")];
        for (stage, end, table, begin) in stages {
            let sql = format!(
                "select p[1], p[2] from (select percentile_cont(array[0.5, 0.99]) within group
                    (order by (extract(epoch from {end} - {begin}) * 1000)::float8) as p
                 from automation.{table} where account_id = '{account}' and {begin} >= '{since}') times"
            );
            let times = database.run("automation", &sql).await?;
            let (p50, p99) = times.split_once('|').unwrap_or_default();
            figures.put(format!("{stage}_p50_ms"), p50.parse().ok());
            figures.put(format!("{stage}_p99_ms"), p99.parse().ok());
        }
        Ok(figures)
    }
}

/// Waits for the effect of each client, and says every second how far it is. What was sent twice counts once.
async fn wait_for_effects(
    requests: &mut UnboundedReceiver<Received>,
    series: &str,
    answers: &RefCell<Vec<Option<Instant>>>,
    name: &str,
) -> Result<Vec<Option<Instant>>> {
    let count = answers.borrow().len();
    let (mut effects, mut left) = (vec![None; count], count);
    let mut second = interval(Duration::from_secs(1));
    while left > 0 {
        tokio::select! {
            _ = second.tick() => {
                let made = answers.borrow().iter().flatten().count();
                eprintln!("  {name}: {made} of {count} made, {} effects", count - left);
            }
            request = timeout(EFFECT_TIMEOUT, requests.recv()) => {
                let missing = || format!("{left} of {count} effects did not come in time");
                let request = request.ok().flatten().ok_or_else(missing)?;
                let number = number_of(&request.body, series);
                if let Some(effect @ None) = number.and_then(|number| effects.get_mut(number)) {
                    *effect = Some(request.at);
                    left -= 1;
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
