//! The closed loop: each connection sends its next request when the answer to the last one is complete. First a warm-up
//! that counts for nothing, then the measured time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use deploy_tools::http::Connection;
use tokio::task::JoinSet;

use crate::histogram::Histogram;
use crate::process::{Cpu, Watched, spent};
use crate::requests::{Load, Requests, Target};

const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

/// How long answers may take to come in after the end.
const LAST_ANSWERS: Duration = Duration::from_secs(15);

/// How long, and with how many connections.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub connections: u32,
    pub warm_up: Duration,
    pub measured: Duration,
}

/// What one round gave.
#[derive(Debug)]
pub struct Outcome {
    pub requests: u64,
    pub elapsed: Duration,
    pub histogram: Histogram,
    pub cpu: Cpu,
}

impl Outcome {
    #[expect(clippy::cast_precision_loss, reason = "no round has 2^52 requests")]
    pub fn per_second(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64()
    }
}

/// Runs one round. An answer that is not the operation's success ends it and is shown.
pub async fn run(
    target: &Arc<Target>,
    load: &Load,
    span: Span,
    watched: &Watched,
) -> Result<Outcome, String> {
    let phase = Arc::new(AtomicU8::new(WARM_UP));
    let mut workers = JoinSet::new();
    for number in 0..span.connections {
        let connection = Connection::open(&target.authority)
            .await
            .map_err(|fault| format!("cannot reach {}: {fault}", target.authority))?;
        let series = format!("{}-{number}", unique_round());
        workers.spawn(work(Arc::clone(target), load.clone(), series, connection, Arc::clone(&phase)));
    }
    pass(&mut workers, span.warm_up).await?;
    let before = watched.cpu();
    let begin = Instant::now();
    phase.store(MEASURE, Ordering::Relaxed);
    pass(&mut workers, span.measured).await?;
    phase.store(STOP, Ordering::Relaxed);
    let elapsed = begin.elapsed();
    let cpu = spent(&before, &watched.cpu());
    let mut histogram = Histogram::default();
    let collected = tokio::time::timeout(LAST_ANSWERS, async {
        while let Some(done) = workers.join_next().await {
            histogram.merge(&done.map_err(|fault| fault.to_string())??);
        }
        Ok::<_, String>(())
    });
    collected.await.map_err(|_| format!("{load}: an answer did not come"))??;
    Ok(Outcome { requests: histogram.count(), elapsed, histogram, cpu })
}

/// Lets time pass. A worker that ends before it is told to has failed.
async fn pass(workers: &mut JoinSet<Result<Histogram, String>>, time: Duration) -> Result<(), String> {
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(()),
        Some(ended) = workers.join_next() => {
            ended.map_err(|fault| fault.to_string())??;
            Err("a connection ended before its time".to_owned())
        }
    }
}

async fn work(
    target: Arc<Target>,
    load: Load,
    series: String,
    mut connection: Connection,
    phase: Arc<AtomicU8>,
) -> Result<Histogram, String> {
    let mut requests = Requests::new(&target, load.clone(), &series);
    let mut histogram = Histogram::default();
    loop {
        let measured = match phase.load(Ordering::Relaxed) {
            STOP => return Ok(histogram),
            phase => phase == MEASURE,
        };
        let message = requests.next();
        let begin = Instant::now();
        let answer = connection.send(message).await.map_err(|fault| format!("{load}: {fault}"))?;
        if answer.status != load.success() {
            return Err(format!(
                "{load} was answered with {} in place of {}: {}",
                answer.status,
                load.success(),
                answer.text()
            ));
        }
        // An answer that came after the end does not count: the time it took is not in the round.
        if measured && phase.load(Ordering::Relaxed) == MEASURE {
            histogram.record(begin.elapsed());
        }
    }
}

/// Tells apart the idempotency keys of rounds.
fn unique_round() -> u32 {
    static ROUND: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    ROUND.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Answers every request with the given message.
    async fn server(answer: &'static str) -> Arc<Target> {
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
        let mut target = Target::new(address, "ba_x".into());
        target.clients = vec!["019a".into()];
        Arc::new(target)
    }

    fn load(name: &str) -> Load {
        Load::Operation(name.parse().unwrap())
    }

    fn span(connections: u32) -> Span {
        Span { connections, warm_up: Duration::from_millis(20), measured: Duration::from_millis(100) }
    }

    #[tokio::test]
    async fn a_round_counts_every_answer_of_every_connection() {
        let target = server("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
        let outcome = run(&target, &load("get"), span(4), &Watched::default()).await.unwrap();
        assert!(outcome.requests > 0 && outcome.per_second() > 0.0);
        assert_eq!(outcome.requests, outcome.histogram.count());
    }

    #[tokio::test]
    async fn an_unexpected_status_ends_the_round_and_shows_the_body() {
        let target = server("HTTP/1.1 429 Too Many\r\ncontent-length: 9\r\n\r\nslow down").await;
        let fault = run(&target, &load("list25"), span(2), &Watched::default()).await.unwrap_err();
        assert!(fault.contains("429") && fault.contains("slow down"), "{fault}");
    }

    #[tokio::test]
    async fn a_success_of_the_wrong_kind_is_unexpected_too() {
        let target = server("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
        assert!(run(&target, &load("create"), span(1), &Watched::default()).await.is_err());
    }
}
