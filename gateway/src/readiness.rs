//! Whether the gateway can do its work: its database and every service answer.

use std::time::Duration;

use chassis::peer::Peer;

use crate::serve::Runtime;

const PATIENCE: Duration = Duration::from_secs(2);

/// Asks all of them at once; the error names who does not answer.
pub async fn check(runtime: &Runtime) -> Result<(), String> {
    let peers = futures::future::join_all(runtime.peers.iter().map(ask));
    let (database, peers) = tokio::join!(tokio::time::timeout(PATIENCE, runtime.db.ping()), peers);
    let mut missing: Vec<String> = peers.into_iter().filter_map(Result::err).collect();
    if !matches!(database, Ok(Ok(()))) {
        missing.insert(0, "the database".to_owned());
    }
    if missing.is_empty() { Ok(()) } else { Err(format!("no answer from: {}", missing.join(", "))) }
}

async fn ask(peer: &Peer) -> Result<(), String> {
    peer.is_serving(PATIENCE).await.map_err(|_| peer.name().to_owned())
}
