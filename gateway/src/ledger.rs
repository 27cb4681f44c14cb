//! The logs of an account in every service: where they end, whether each chain of hashes is whole, and whether they have all
//! records.

use std::fmt::Write as _;
use std::time::Duration;

use chassis_base::{Account, Error};
use chassis_rpc::peer::Peer;
use futures::future::try_join_all;
use proto::gateway::{GetLedgerResponse, LedgerHead};
use proto::log::log_service_client::LogServiceClient;
use proto::log::{
    GetLogHeadRequest, LogFault, LogHead, SnapshotLogRequest, SnapshotLogResponse, VerifyLogRequest,
    VerifyLogResponse,
};
use tonic::Status;

use crate::runtime::{NAME, Runtime};

/// How long a service may take for one part of a log.
const PART_TIMEOUT: Duration = Duration::from_secs(15);

/// The ends of the logs, by service. Fails if a service does not answer.
pub async fn heads(
    runtime: &Runtime,
    account: &Account,
    timeout: Duration,
) -> Result<GetLedgerResponse, Status> {
    let heads = runtime.peers.iter().map(|peer| head(runtime, peer, account, timeout));
    let mut data = try_join_all(heads).await?;
    let own = chassis_data::log::head(&runtime.db, account.id).await?;
    data.push(shown(NAME, own));
    data.sort_by(|one, other| one.service.cmp(&other.service));
    Ok(GetLedgerResponse { data })
}

async fn head(
    runtime: &Runtime,
    peer: &Peer,
    account: &Account,
    timeout: Duration,
) -> Result<LedgerHead, Status> {
    let now = runtime.clock.now();
    let mut request = runtime.mesh_request(peer.name(), account, NAME, now, GetLogHeadRequest {})?;
    request.set_timeout(timeout);
    let answer = LogServiceClient::new(peer.channel()).get_log_head(request).await?;
    Ok(shown(peer.name(), answer.into_inner().head.unwrap_or_default()))
}

fn shown(service: &str, LogHead { position, hash, at }: LogHead) -> LedgerHead {
    LedgerHead { service: service.to_owned(), position, hash: hex(&hash), at }
}

/// As hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The log of one service, as far as it was checked.
#[derive(Clone, Debug)]
pub struct Verified {
    pub service: String,
    pub outcome: Result<ChainEnd, String>,
}

/// The end of a chain without a fault.
#[derive(Clone, Debug)]
pub struct ChainEnd {
    pub position: i64,
    pub hash: Vec<u8>,
}

/// Checks the log of the gateway itself and of every service, by name. Parts of a log are checked one after the other.
pub async fn verify(runtime: &Runtime, account: &Account) -> Vec<Verified> {
    let mut peers: Vec<&Peer> = runtime.peers.iter().collect();
    peers.sort_by_key(|peer| peer.name());
    let mut all = vec![Verified { service: NAME.to_owned(), outcome: verify_own(runtime, account).await }];
    for peer in peers {
        let outcome = verify_service(runtime, peer, account).await;
        all.push(Verified { service: peer.name().to_owned(), outcome });
    }
    all
}

async fn verify_own(runtime: &Runtime, account: &Account) -> Result<ChainEnd, String> {
    let mut request = VerifyLogRequest::default();
    loop {
        let part = chassis_data::log::verify(&runtime.db, account.id, &request).await;
        match next(part.map_err(|error| error.to_string())?) {
            Ok(more) => request = more,
            Err(end) => return end,
        }
    }
}

async fn verify_service(runtime: &Runtime, peer: &Peer, account: &Account) -> Result<ChainEnd, String> {
    let mut client = LogServiceClient::new(peer.channel());
    let mut message = VerifyLogRequest::default();
    loop {
        let now = runtime.clock.now();
        let request = runtime.mesh_request(peer.name(), account, NAME, now, message);
        let mut request = request.map_err(|error: Error| error.to_string())?;
        request.set_timeout(PART_TIMEOUT);
        let part = client.verify_log(request).await.map_err(|status| status.message().to_owned())?;
        match next(part.into_inner()) {
            Ok(more) => message = more,
            Err(end) => return end,
        }
    }
}

/// The request for the next part, or how the check has ended.
fn next(part: VerifyLogResponse) -> Result<VerifyLogRequest, Result<ChainEnd, String>> {
    let VerifyLogResponse { position, hash, more, fault } = part;
    match fault {
        Some(LogFault { position, detail }) => Err(Err(format!("broken at position {position}: {detail}"))),
        None if more => Ok(VerifyLogRequest { after: position, hash }),
        None => Err(Ok(ChainEnd { position, hash: hash.to_vec() })),
    }
}

/// The log of one service after it was compared with the records.
#[derive(Clone, Debug)]
pub struct Compared {
    pub service: String,
    /// How many entries it lacked, which it has now.
    pub outcome: Result<i64, String>,
}

/// Makes every service compare its log with the records of the account, and log what it lacks.
pub async fn snapshot(runtime: &Runtime, account: &Account) -> Vec<Compared> {
    let mut peers: Vec<&Peer> = runtime.peers.iter().collect();
    peers.sort_by_key(|peer| peer.name());
    let mut all = Vec::new();
    for peer in peers {
        let outcome = snapshot_service(runtime, peer, account).await;
        all.push(Compared { service: peer.name().to_owned(), outcome });
    }
    all
}

async fn snapshot_service(runtime: &Runtime, peer: &Peer, account: &Account) -> Result<i64, String> {
    let mut client = LogServiceClient::new(peer.channel());
    let mut message = SnapshotLogRequest { restart: true };
    loop {
        let now = runtime.clock.now();
        let request = runtime.mesh_request(peer.name(), account, NAME, now, message);
        let mut request = request.map_err(|error: Error| error.to_string())?;
        request.set_timeout(PART_TIMEOUT);
        let part = client.snapshot_log(request).await.map_err(|status| status.message().to_owned())?;
        let SnapshotLogResponse { logged, more } = part.into_inner();
        if !more {
            return Ok(logged);
        }
        message = SnapshotLogRequest { restart: false };
    }
}
