//! Provisioning: every service creates its own row and its defaults of an account. A file of its own, because these are
//! calls to the services and not writes of the gateway.

use std::time::Duration;

use chassis_base::{Account, Error};
use chassis_rpc::peer::{Peer, is_transport};
use proto::api::ProvisionAccountRequest;
use proto::api::provisioning_service_client::ProvisioningServiceClient;
use tokio::time::Instant;
use tonic::{Code, Status};

use super::Record;
use crate::runtime::{NAME, Runtime};

const PROVISION_TIMEOUT: Duration = Duration::from_secs(15);
/// The pause before a retry.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// A service that has not been provisioned with the account yet, and why.
#[derive(Clone, Debug)]
pub struct Unprovisioned {
    pub peer: String,
    pub reason: String,
}

/// Provisions the account in every service at the same time, with its settings and its defaults. Repeatable. Returns the
/// services that failed, by name.
pub async fn provision(runtime: &Runtime, record: &Record) -> Result<Vec<Unprovisioned>, Error> {
    let account = record.account()?;
    let mut calls = tokio::task::JoinSet::new();
    for peer in runtime.peers.iter() {
        let call = Provisioning {
            runtime: runtime.clone(),
            peer: peer.clone(),
            account: account.clone(),
            name: record.name.clone(),
        };
        calls.spawn(call.run());
    }
    let mut failed: Vec<Unprovisioned> = calls.join_all().await.into_iter().flatten().collect();
    failed.sort_by(|one, other| one.peer.cmp(&other.peer));
    for Unprovisioned { peer, reason } in &failed {
        tracing::warn!(account = %record.account_id, peer, reason, "provisioning failed");
    }
    Ok(failed)
}

/// The provisioning of one account in one service.
struct Provisioning {
    runtime: Runtime,
    peer: Peer,
    account: Account,
    name: String,
}

impl Provisioning {
    /// Repeats the call while the service is only busy, up to the time limit. `None` when it succeeded.
    async fn run(self) -> Option<Unprovisioned> {
        let failed = |reason: String| Some(Unprovisioned { peer: self.peer.name().to_owned(), reason });
        let mut client = ProvisioningServiceClient::new(self.peer.channel());
        let deadline = Instant::now() + PROVISION_TIMEOUT;
        loop {
            let message = ProvisionAccountRequest { name: self.name.clone() };
            let now = self.runtime.clock.now();
            let mut request =
                match self.runtime.mesh_request(self.peer.name(), &self.account, NAME, now, message) {
                    Ok(request) => request,
                    Err(error) => return failed(error.to_string()),
                };
            request.set_timeout(deadline.saturating_duration_since(Instant::now()));
            match tokio::time::timeout_at(deadline, client.provision_account(request)).await {
                Ok(Ok(_)) => return None,
                Ok(Err(status)) if is_busy(&status) && Instant::now() + RETRY_INTERVAL < deadline => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                Ok(Err(status)) => return failed(status.message().to_owned()),
                Err(_) => return failed("it did not answer".to_owned()),
            }
        }
    }
}

/// Whether the service itself asks for a repeat. A transport error is not a reason to repeat.
fn is_busy(status: &Status) -> bool {
    status.code() == Code::Unavailable && !is_transport(status)
}
