//! Calls of a flow that is only tried: each is carried out by its service and undone. A file of its own, because the rest of
//! a trial needs no network.

use std::time::{Duration, Instant};

use chassis_rpc::Context;
use chassis_rpc::call::{DRY_RUN, REQUEST_ID};
use chassis_rpc::peer::Peers;
use chassis_rpc::token::{self, Tokens};
use http::uri::PathAndQuery;
use serde_json::Value;
use tonic::metadata::{MetadataMap, MetadataValue};

use crate::definition::methods;

/// The largest answer that is read.
const MAX_RESPONSE: usize = 4 << 20;
/// For one call, unless the caller waits for less.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The caller's name in logs of other services.
const ACTOR: &str = "automation";

/// Makes the calls with the rights of whoever tries the flow.
pub(super) struct Rehearser<'a> {
    pub peers: &'a Peers,
    pub tokens: &'a Tokens,
    pub context: &'a Context,
}

impl Rehearser<'_> {
    /// The answer that the call would get, or why it would fail.
    pub(super) async fn call(&self, method: &str, input: &Value) -> Result<Value, String> {
        let Context { identity, deadline, clock, request_id, .. } = self.context;
        let method = methods::find(method)?;
        method.check_scopes(&identity.scopes)?;
        let message = method.encode(input)?;
        let peer = self.peers.get(&method.peer);
        let peer = peer.ok_or_else(|| format!("the service {} is not there", method.peer))?;
        let minter = self.tokens.to(&method.peer);
        let token =
            minter.mint(&identity.account, ACTOR, &identity.actor_name, &identity.scopes, clock.now());
        let mut metadata = MetadataMap::new();
        for (name, value) in [(token::HEADER, token), (REQUEST_ID, request_id.to_string())] {
            let value = MetadataValue::try_from(value).map_err(|_| format!("{name} cannot be sent"))?;
            metadata.insert(name, value);
        }
        let path = PathAndQuery::try_from(format!("{DRY_RUN}{}", method.path));
        let path = path.map_err(|_| "the method cannot be a path".to_owned())?;
        let timeout = TIMEOUT.min(deadline.saturating_duration_since(Instant::now()));
        let answer = peer.call(path, message, metadata, timeout, MAX_RESPONSE);
        match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(answer)) => method.decode(answer.get_ref()),
            Ok(Err(status)) => Err(chassis_base::error::status::explain(&status)),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }
}
