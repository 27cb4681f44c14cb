//! A call that the gateway makes to a service for an account, besides those that requests become.

use std::time::Duration;

use bytes::Bytes;
use chassis_base::Account;
use chassis_rpc::token;
use http::uri::PathAndQuery;
use prost::Message;
use tonic::Status;
use tonic::metadata::{MetadataMap, MetadataValue};

use super::app::App;
use super::upstream::UpstreamCall;
use crate::runtime::NAME;

/// Reads something of a service, with repeats.
pub(super) async fn read<M: Message + Default>(
    app: &App,
    account: &Account,
    service: &str,
    path: PathAndQuery,
    message: &impl Message,
    timeout: Duration,
) -> Result<M, Status> {
    let upstream = app.upstreams.get(service);
    let upstream = upstream.ok_or_else(|| Status::unavailable("This part of the service is not running."))?;
    let token = app.runtime.tokens.to(service).mint_mesh(account, NAME, app.runtime.clock.now());
    let token = MetadataValue::try_from(token)
        .map_err(|_| Status::internal("a context token is not a metadata value"))?;
    let mut metadata = MetadataMap::new();
    metadata.insert(token::HEADER, token);
    let outgoing = UpstreamCall {
        path,
        message: Bytes::from(message.encode_to_vec()),
        metadata,
        timeout,
        repeatable: true,
        changes: false,
    };
    let answer = upstream.call(&outgoing).await?.into_inner();
    M::decode(answer).map_err(|error| Status::internal(error.to_string()))
}
