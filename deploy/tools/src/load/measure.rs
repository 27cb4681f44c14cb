//! The closed loop: each connection sends its next request when the answer to the last one is complete. First a warm-up
//! that counts for nothing, then the measured time.

use std::time::Duration;

use deploy_tools::http::Connection;
use futures::future::{join_all, try_join_all};
use tokio::time::{Instant, sleep_until, timeout};

use crate::latency::Latencies;
use crate::process::{Cpu, Watched, spent};
use crate::requests::{Load, Requests, Target};

/// How long answers may take to come in after the end.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// How long, and with how many connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub connections: u32,
    pub warm_up: Duration,
    pub measured: Duration,
}

/// What one round gave.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub elapsed: Duration,
    pub latencies: Latencies,
    pub cpu: Cpu,
}

impl Outcome {
    #[expect(clippy::cast_precision_loss, reason = "no round has 2^52 requests")]
    pub(crate) fn requests(&self) -> f64 {
        self.latencies.count() as f64
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.requests() / self.elapsed.as_secs_f64()
    }
}

/// Runs one round. An answer that is not the operation's success ends it and is shown.
pub(crate) async fn run(
    target: &Target,
    load: &Load,
    span: Span,
    watched: &Watched,
) -> Result<Outcome, String> {
    let unreachable = |fault| format!("cannot reach {}: {fault}", target.authority);
    let opened = join_all((0..span.connections).map(|_| Connection::open(&target.authority))).await;
    let connections = opened.into_iter().collect::<Result<Vec<_>, _>>().map_err(unreachable)?;
    let begin = Instant::now() + span.warm_up;
    let end = begin + span.measured;
    let workers = connections.into_iter().enumerate().map(async |(number, connection)| {
        let requests = Requests::new(target, load.clone(), &format!("{}-{number}", unique_round()));
        work(requests, load, connection, begin, end).await
    });
    let clock = async {
        sleep_until(begin).await;
        let before = watched.cpu();
        sleep_until(end).await;
        Ok(spent(&before, &watched.cpu()))
    };
    let all = async { futures::try_join!(try_join_all(workers), clock) };
    let limit = span.warm_up + span.measured + ANSWER_TIMEOUT;
    let done = timeout(limit, all).await.map_err(|_| format!("{load}: an answer did not come"))?;
    let (workers, cpu) = done?;
    let mut latencies = Latencies::new()?;
    for worker in &workers {
        latencies.add(worker)?;
    }
    Ok(Outcome { elapsed: span.measured, latencies, cpu })
}

async fn work(
    mut requests: Requests<'_>,
    load: &Load,
    mut connection: Connection,
    begin: Instant,
    end: Instant,
) -> Result<Latencies, String> {
    let mut latencies = Latencies::new()?;
    loop {
        let sent = Instant::now();
        if sent >= end {
            return Ok(latencies);
        }
        let answer = connection.send(requests.next()).await.map_err(|fault| format!("{load}: {fault}"))?;
        if answer.status != load.success() {
            let expected = load.success();
            let text = answer.text();
            return Err(format!("{load} was answered with {} in place of {expected}: {text}", answer.status));
        }
        // Only what began and ended within the measured time counts.
        let now = Instant::now();
        if sent >= begin && now <= end {
            latencies.record(now - sent);
        }
    }
}

/// Tells apart the idempotency keys of rounds.
fn unique_round() -> u32 {
    static ROUND: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    ROUND.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A round against a server that answers every request with the given message.
    async fn round(answer: &'static str, operation: &str) -> Result<Outcome, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    while stream.read(&mut request).await.unwrap_or(0) > 0 {
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        let (warm_up, measured) = (Duration::from_millis(20), Duration::from_millis(100));
        let load = Load::Operation(operation.parse().unwrap());
        let span = Span { connections: 4, warm_up, measured };
        run(&Target::new(&address, "ba_x"), &load, span, &Watched::default()).await
    }

    #[tokio::test]
    async fn a_round_counts_what_was_answered() {
        let outcome = round("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", "get").await.unwrap();
        assert!(outcome.requests() > 0.0 && outcome.per_second() > 0.0);
    }

    #[tokio::test]
    async fn an_unexpected_status_ends_the_round_and_shows_the_body() {
        let limited = "HTTP/1.1 429 Too Many\r\ncontent-length: 9\r\n\r\nslow down";
        let fault = round(limited, "list25").await.unwrap_err();
        assert!(fault.contains("429") && fault.contains("slow down"), "{fault}");
        let wrong = round("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", "create").await;
        assert!(wrong.is_err(), "a success of another kind is unexpected too");
    }
}
