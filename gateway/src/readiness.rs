//! Whether the gateway can do its work. It needs its own database. Without one of the services it still serves the
//! others' routes, so that one is told and no reason to send requests elsewhere.

use std::time::Duration;

use chassis::peer::Peer;

use crate::serve::Runtime;

const PATIENCE: Duration = Duration::from_secs(2);

/// Who answers, all of them asked at once.
struct Answers {
    database: bool,
    /// The services that do not.
    missing: Vec<String>,
}

async fn ask_all(runtime: &Runtime) -> Answers {
    let peers = futures::future::join_all(runtime.peers.iter().map(ask));
    let (database, peers) = tokio::join!(tokio::time::timeout(PATIENCE, runtime.db.ping()), peers);
    let missing = peers.into_iter().filter_map(Result::err).collect();
    Answers { database: matches!(database, Ok(Ok(()))), missing }
}

/// Whether requests should come here: what does not answer is named either way.
pub async fn check(runtime: &Runtime) -> Result<String, String> {
    let Answers { database, missing } = ask_all(runtime).await;
    match (database, missing.is_empty()) {
        (true, true) => Ok("ready".to_owned()),
        (true, false) => Ok(format!("ready; no answer from: {}", missing.join(", "))),
        (false, _) => Err(refusal(database, missing)),
    }
}

/// Whether everything behind the gateway is there too.
pub async fn check_mesh(runtime: &Runtime) -> Result<String, String> {
    let Answers { database, missing } = ask_all(runtime).await;
    if database && missing.is_empty() { Ok("ready".to_owned()) } else { Err(refusal(database, missing)) }
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
