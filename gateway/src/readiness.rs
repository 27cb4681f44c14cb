//! Whether the gateway can do its work. It needs its own database, which may be busy: then it is asked beside the pool.
//! Without one of the services it still serves the others' routes, so that one is told and no reason to send requests
//! elsewhere. However often it is asked, the database and the services are asked about once a second.

use std::sync::Arc;
use std::time::Duration;

use chassis::peer::Peer;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::serve::Runtime;

const PATIENCE: Duration = Duration::from_secs(2);
/// For how long an answer is given again.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// Cheap to clone; clones share what they know.
#[derive(Clone)]
pub struct Readiness {
    runtime: Runtime,
    /// The last answers. Whoever comes while they are asked for waits for the same ones.
    known: Arc<Mutex<Option<(Instant, Answers)>>>,
}

/// Who answers, all of them asked at once.
#[derive(Clone)]
struct Answers {
    database: bool,
    /// The services that do not.
    missing: Vec<String>,
}

impl Readiness {
    pub fn new(runtime: Runtime) -> Self {
        Self { runtime, known: Arc::default() }
    }

    /// Whether requests should come here: what does not answer is named either way.
    pub async fn check(&self) -> Result<String, String> {
        let Answers { database, missing } = self.answers().await;
        match (database, missing.is_empty()) {
            (true, true) => Ok("ready".to_owned()),
            (true, false) => Ok(format!("ready; no answer from: {}", missing.join(", "))),
            (false, _) => Err(refusal(database, missing)),
        }
    }

    /// Whether everything behind the gateway is there too.
    pub async fn check_mesh(&self) -> Result<String, String> {
        let Answers { database, missing } = self.answers().await;
        if database && missing.is_empty() { Ok("ready".to_owned()) } else { Err(refusal(database, missing)) }
    }

    async fn answers(&self) -> Answers {
        let this = self.clone();
        // Not in the request: whoever gives up must not make the next one ask again.
        let asked = tokio::spawn(async move {
            let mut known = this.known.lock().await;
            if let Some((at, answers)) = &*known
                && at.elapsed() < TRUSTED_FOR
            {
                return answers.clone();
            }
            let answers = ask_all(&this.runtime).await;
            *known = Some((Instant::now(), answers.clone()));
            answers
        });
        asked.await.unwrap_or(Answers { database: false, missing: Vec::new() })
    }
}

async fn ask_all(runtime: &Runtime) -> Answers {
    metrics::counter!("readiness_checks_total").increment(1);
    let peers = futures::future::join_all(runtime.peers.iter().map(ask));
    let (database, peers) = tokio::join!(runtime.db.ping(), peers);
    // The reason is for operators; the answer goes to anybody who asks.
    if let Err(error) = &database {
        tracing::warn!(%error, "not ready");
    }
    let missing = peers.into_iter().filter_map(Result::err).collect();
    Answers { database: database.is_ok(), missing }
}

fn refusal(database: bool, mut missing: Vec<String>) -> String {
    if !database {
        missing.insert(0, "the database".to_owned());
    }
    format!("no answer from: {}", missing.join(", "))
}

async fn ask(peer: &Peer) -> Result<(), String> {
    peer.is_serving(PATIENCE).await.map_err(|_| peer.name().to_owned())
}
