//! One round over REST: a warm-up that counts for nothing, then the measured time.

use std::cell::RefCell;
use std::time::Duration;

use deploy_tools::Result;
use hdrhistogram::Histogram;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::clients::{self, Answered, Schedule};
use crate::process::{Cpu, Watched, spent};
use crate::requests::{Load, Target};

/// How long answers may take to come in after the end.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// How long, and with how many connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub connections: u32,
    pub warm_up: Duration,
    pub measured: Duration,
}

/// What a round gave, over REST or by pgbench.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Or transactions.
    pub requests: f64,
    pub per_second: f64,
    /// Milliseconds of CPU time in all, by process.
    pub cpu: Cpu,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

/// Latencies of many requests, to a tenth of a percent.
#[derive(Debug)]
pub(crate) struct Latencies(RefCell<Histogram<u64>>);

impl Latencies {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(RefCell::new(Histogram::new(3)?)))
    }

    pub(crate) fn record(&self, latency: Duration) {
        // It grows as it needs to, so nothing is out of its range.
        let _ = self.0.borrow_mut().record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The milliseconds that this part of the requests did not exceed; `None` without requests.
    pub(crate) fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        let histogram = self.0.borrow();
        let nanoseconds = (!histogram.is_empty()).then(|| histogram.value_at_quantile(quantile))?;
        Some(Duration::from_nanos(nanoseconds).as_secs_f64() * 1000.0)
    }

    fn count(&self) -> f64 {
        // A round of ten minutes has no 2^32 requests.
        f64::from(u32::try_from(self.0.borrow().len()).unwrap_or(u32::MAX))
    }
}

/// Runs one round. An answer that is not the load's success ends it and is shown.
pub(crate) async fn run(target: &Target, load: &Load, span: Span, watched: &Watched) -> Result<Outcome> {
    let begin = Instant::now() + span.warm_up;
    let end = begin + span.measured;
    let latencies = Latencies::new()?;
    // Only what began and ended within the measured time counts.
    let record = |answered: Answered| {
        if answered.sent >= begin && answered.at <= end {
            latencies.record(answered.at - answered.sent);
        }
    };
    let clock = async {
        sleep_until(begin).await;
        let before = watched.cpu();
        sleep_until(end).await;
        Ok(spent(&before, &watched.cpu()))
    };
    let schedule = Schedule::Until(end);
    let all =
        async { futures::try_join!(clients::run(target, load, span.connections, &schedule, record), clock) };
    let done = timeout_at(end + ANSWER_TIMEOUT, all).await;
    let ((), cpu) = done.map_err(|_| format!("{}: an answer did not come", load.name))??;
    let requests = latencies.count();
    let (p50_ms, p99_ms) = (latencies.quantile_ms(0.5), latencies.quantile_ms(0.99));
    Ok(Outcome { requests, per_second: requests / span.measured.as_secs_f64(), cpu, p50_ms, p99_ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use deploy_tools::http::authority;
    use deploy_tools::receiver::Receiver;

    #[tokio::test]
    async fn a_round_counts_what_was_answered() {
        let receiver = Receiver::start(tokio::sync::mpsc::unbounded_channel().0).await.unwrap();
        let target = Target::new(authority(&receiver.url()).unwrap(), "ba_x");
        let (warm_up, measured) = (Duration::from_millis(20), Duration::from_millis(100));
        let span = Span { connections: 4, warm_up, measured };
        let outcome = run(&target, &Load::get("/"), span, &Watched::default()).await.unwrap();
        assert!(outcome.requests > 0.0 && outcome.per_second > 0.0 && outcome.p50_ms.is_some());
    }

    #[test]
    fn one_slow_request_in_fifty_shows_in_the_99th_percentile_only() {
        let latencies = Latencies::new().unwrap();
        assert_eq!(latencies.quantile_ms(0.5), None);
        latencies.record(Duration::from_millis(80));
        (0..49).for_each(|_| latencies.record(Duration::from_millis(1)));
        assert!((latencies.quantile_ms(0.5).unwrap() - 1.0).abs() < 0.01);
        assert!((latencies.quantile_ms(0.99).unwrap() - 80.0).abs() < 0.1);
    }
}
