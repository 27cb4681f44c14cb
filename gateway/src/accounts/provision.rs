//! Telling the services of an account.

use std::time::Duration;

use chassis::peer::Peer;
use chassis::token;
use proto::api::ProvisionAccountRequest;
use proto::api::provisioning_service_client::ProvisioningServiceClient;
use tonic::Request;
use tonic::metadata::MetadataValue;

use super::store::AccountRow;
use crate::serve::Runtime;

const DEADLINE: Duration = Duration::from_secs(15);
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

async fn tell(peer: Peer, token: String, name: String) -> Option<Unprovisioned> {
    let mut request = Request::new(ProvisionAccountRequest { name });
    request.set_timeout(DEADLINE);
    let failed = |reason: String| Some(Unprovisioned { peer: peer.name().to_owned(), reason });
    let Ok(token) = MetadataValue::try_from(token) else { return failed("no token".to_owned()) };
    request.metadata_mut().insert(token::HEADER, token);
    let mut client = ProvisioningServiceClient::new(peer.channel());
    match tokio::time::timeout(DEADLINE, client.provision_account(request)).await {
        Ok(Ok(_)) => None,
        Ok(Err(status)) => failed(status.message().to_owned()),
        Err(_) => failed("it did not answer".to_owned()),
    }
}
