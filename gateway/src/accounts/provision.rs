//! Telling the services of an account.

use std::time::Duration;

use chassis::peer::{Peer, is_transport};
use chassis::token;
use proto::api::ProvisionAccountRequest;
use proto::api::provisioning_service_client::ProvisioningServiceClient;
use tokio::time::Instant;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Status};

use super::store::AccountRow;
use crate::serve::Runtime;

const DEADLINE: Duration = Duration::from_secs(15);
/// Before a retry.
const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// Who the services see as the one that acts.
const ACTOR: &str = "gateway";

/// A service that does not know the account yet, and why.
#[derive(Clone, Debug)]
pub struct Unprovisioned {
    pub peer: String,
    pub reason: String,
}

/// Makes the account known to every service at the same time, with its settings and its defaults. Repeatable. Says
/// which of them failed, by name.
pub async fn provision(
    runtime: &Runtime,
    account: &AccountRow,
) -> Result<Vec<Unprovisioned>, chassis::Error> {
    let context = account.account()?;
    let mut calls = tokio::task::JoinSet::new();
    for peer in runtime.peers.iter() {
        let token = runtime.tokens.to(peer.name()).mint_mesh(&context, ACTOR, runtime.clock.now());
        calls.spawn(tell(peer.clone(), token, account.name.clone()));
    }
    let mut failed: Vec<Unprovisioned> = calls.join_all().await.into_iter().flatten().collect();
    failed.sort_by(|one, other| one.peer.cmp(&other.peer));
    for Unprovisioned { peer, reason } in &failed {
        tracing::warn!(account = %account.account_id, peer, reason, "the account could not be provisioned");
    }
    Ok(failed)
}

/// Tells one service; a retry follows as long as that is only busy, up to the deadline.
async fn tell(peer: Peer, token: String, name: String) -> Option<Unprovisioned> {
    let failed = |reason: String| Some(Unprovisioned { peer: peer.name().to_owned(), reason });
    let Ok(token) = MetadataValue::try_from(token) else { return failed("no token".to_owned()) };
    let mut client = ProvisioningServiceClient::new(peer.channel());
    let deadline = Instant::now() + DEADLINE;
    loop {
        let mut request = Request::new(ProvisionAccountRequest { name: name.clone() });
        request.set_timeout(deadline.saturating_duration_since(Instant::now()));
        request.metadata_mut().insert(token::HEADER, token.clone());
        match tokio::time::timeout_at(deadline, client.provision_account(request)).await {
            Ok(Ok(_)) => return None,
            Ok(Err(status)) if is_busy(&status) && Instant::now() + RETRY_PAUSE < deadline => {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            Ok(Err(status)) => return failed(status.message().to_owned()),
            Err(_) => return failed("it did not answer".to_owned()),
        }
    }
}

/// Whether the service itself asks to come back; one that cannot be reached does not.
fn is_busy(status: &Status) -> bool {
    status.code() == Code::Unavailable && !is_transport(status)
}
