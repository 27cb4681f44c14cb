//! The calls to automation, which restricts the webhook endpoints of a key to what the key may read. A file of its own,
//! because the worker and the command line both make them.

use std::time::Duration;

use chassis_base::error::status::unavailable;
use chassis_base::{Account, Error};
use chassis_rpc::peer::Peer;
use proto::automation::webhook_service_client::WebhookServiceClient;
use proto::automation::{AssignWebhookEndpointRequest, SetKeyScopesRequest};

use super::Record;
use crate::runtime::{NAME, Runtime};

/// The name of the service in PEERS.
const SERVICE: &str = "automation";
const SET_SCOPES_TIMEOUT: Duration = Duration::from_secs(10);

/// `None` where no automation is configured.
pub(super) fn peer(runtime: &Runtime) -> Option<&Peer> {
    runtime.peers.get(SERVICE)
}

/// Sets what the webhook endpoints of a key or credential may receive. Repeatable.
pub(super) async fn set_scopes(
    runtime: &Runtime,
    peer: &Peer,
    account: &Account,
    message: SetKeyScopesRequest,
) -> Result<(), Error> {
    let mut request = runtime.mesh_request(peer.name(), account, NAME, runtime.clock.now(), message)?;
    request.set_timeout(SET_SCOPES_TIMEOUT);
    let answer = WebhookServiceClient::new(peer.channel()).set_key_scopes(request).await;
    answer.map(|_| ()).map_err(|status| Error::Peer(Box::new(status)))
}

/// Gives an endpoint the key and the scopes of `key`.
pub(super) async fn assign_endpoint(
    runtime: &Runtime,
    account: &Account,
    key: Record,
    endpoint: &str,
) -> Result<(), Error> {
    let missing = || Error::Peer(Box::new(unavailable("PEERS names no automation")));
    let peer = peer(runtime).ok_or_else(missing)?;
    let message =
        AssignWebhookEndpointRequest { id: endpoint.to_owned(), key: key.public_id, scopes: key.scopes };
    let now = runtime.clock.now();
    let request = runtime.mesh_request(peer.name(), account, "command line", now, message)?;
    let answer = WebhookServiceClient::new(peer.channel()).assign_webhook_endpoint(request).await;
    answer.map(|_| ()).map_err(|status| Error::Peer(Box::new(status)))
}
