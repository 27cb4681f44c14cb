//! Whether the gateway can do its work. It needs its own database; when all connections of the pool are busy, the check
//! opens one beside the pool. A service that does not answer is reported, but the gateway stays ready, because it still
//! serves the routes of the other services. However often readiness is requested, the database and the services are
//! checked about once a second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis_rpc::peer::Peer;
use tokio::sync::Mutex;

use crate::runtime::Runtime;

const PEER_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a result is reused.
const MAX_AGE: Duration = Duration::from_secs(1);

/// Cheap to clone; clones share the last result.
#[derive(Clone)]
pub struct Readiness {
    runtime: Runtime,
    /// The last result and its time. Callers that arrive while it is computed wait for it.
    last: Arc<Mutex<Option<(Instant, Report)>>>,
}

/// The result of one check of the database and all services.
#[derive(Clone)]
struct Report {
    database: bool,
    /// The services that did not answer.
    missing: Vec<String>,
}

impl Readiness {
    pub fn new(runtime: Runtime) -> Self {
        Self { runtime, last: Arc::default() }
    }

    /// Whether requests should be sent to this gateway. Services that do not answer are named either way.
    pub async fn check(&self) -> Result<String, String> {
        let Report { database, missing } = self.report().await;
        match (database, missing.is_empty()) {
            (true, true) => Ok("ready".to_owned()),
            (true, false) => Ok(format!("ready; no answer from: {}", missing.join(", "))),
            (false, _) => Err(not_ready(database, missing)),
        }
    }

    /// Whether everything behind the gateway answers too.
    pub async fn check_mesh(&self) -> Result<String, String> {
        let Report { database, missing } = self.report().await;
        if database && missing.is_empty() {
            Ok("ready".to_owned())
        } else {
            Err(not_ready(database, missing))
        }
    }

    async fn report(&self) -> Report {
        let Self { runtime, last } = self.clone();
        // In a task of its own: a request that is canceled must not make the next one start the checks again.
        let checked = tokio::spawn(async move {
            let mut last = last.lock().await;
            match &*last {
                Some((at, report)) if at.elapsed() < MAX_AGE => report.clone(),
                _ => {
                    let report = check_all(&runtime).await;
                    last.insert((Instant::now(), report)).1.clone()
                }
            }
        });
        checked.await.unwrap_or(Report { database: false, missing: Vec::new() })
    }
}

async fn check_all(runtime: &Runtime) -> Report {
    metrics::counter!("readiness_checks_total").increment(1);
    let peers = futures::future::join_all(runtime.peers.iter().map(check_peer));
    let (database, peers) = tokio::join!(runtime.db.ping(), peers);
    // The reason is for operators; the answer goes to anybody who asks.
    if let Err(error) = &database {
        tracing::warn!(%error, "not ready");
    }
    let missing = peers.into_iter().filter_map(Result::err).collect();
    Report { database: database.is_ok(), missing }
}

async fn check_peer(peer: &Peer) -> Result<(), String> {
    peer.is_serving(PEER_TIMEOUT).await.map_err(|_| peer.name().to_owned())
}

fn not_ready(database: bool, mut missing: Vec<String>) -> String {
    if !database {
        missing.insert(0, "the database".to_owned());
    }
    format!("no answer from: {}", missing.join(", "))
}
