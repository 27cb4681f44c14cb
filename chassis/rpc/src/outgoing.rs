//! Calls to other services of the mesh, made for an account. They are made before a transaction begins, never inside
//! one, so that no connection or row lock waits for another service.

use std::time::{Duration, Instant};

use chassis_base::error::status::unavailable;
use chassis_base::{Account, Clock, Error};
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::call::Context;
use crate::peer::Peers;
use crate::token::{self, Tokens};

/// The longest a call to another service may take, whatever the caller's own deadline.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Builds requests to other services. Cheap to clone.
#[derive(Clone)]
pub struct Outgoing {
    caller: &'static str,
    peers: Peers,
    tokens: Tokens,
    clock: Clock,
}

impl Outgoing {
    /// `caller` is the name of this process among the peers.
    pub fn new(caller: &'static str, peers: Peers, tokens: Tokens, clock: Clock) -> Self {
        Self { caller, peers, tokens, clock }
    }

    /// The channel to a service.
    pub fn channel(&self, service: &str) -> Result<Channel, Error> {
        let peer = self.peers.get(service);
        let peer =
            peer.ok_or_else(|| Error::Internal(format!("the service {service} is not among the PEERS")))?;
        Ok(peer.channel())
    }

    /// A request to a service for an account, limited by the deadline of the call that it is made for.
    pub fn request<T>(
        &self,
        service: &str,
        account: &Account,
        deadline: Instant,
        message: T,
    ) -> Result<Request<T>, Error> {
        self.request_at(service, Cause { account, depth: 0 }, deadline, message)
    }

    /// A write request to a service. It keeps the automation depth of the call that it is made for, so that its events
    /// count in the same chain.
    pub fn caused_request<T>(
        &self,
        service: &str,
        context: &Context,
        message: T,
    ) -> Result<Request<T>, Error> {
        let cause = Cause { account: context.account(), depth: context.identity.depth };
        self.request_at(service, cause, context.deadline, message)
    }

    fn request_at<T>(
        &self,
        service: &str,
        cause: Cause<'_>,
        deadline: Instant,
        message: T,
    ) -> Result<Request<T>, Error> {
        let mut request = Request::new(message);
        request.set_timeout(deadline.saturating_duration_since(Instant::now()).min(TIMEOUT));
        let minter = self.tokens.to(service).at_depth(cause.depth);
        let token = minter.mint_mesh(cause.account, self.caller, self.clock.now());
        let token = MetadataValue::try_from(token)
            .map_err(|_| Error::Internal("the context token is not a valid header value".to_owned()))?;
        request.metadata_mut().insert(token::HEADER, token);
        Ok(request)
    }
}

/// The call that a request is made for.
#[derive(Clone, Copy)]
struct Cause<'a> {
    account: &'a Account,
    /// The length of the chain of events that led to it.
    depth: u32,
}

/// The error for a failed lookup in another service. It is UNAVAILABLE whatever the cause, because nothing was written
/// here and a repeat is safe. `what` names what cannot be looked up, for example `Clients`.
pub fn lookup_failed(service: &str, what: &str, status: &Status) -> Error {
    tracing::warn!(service, code = ?status.code(), message = status.message(), "peer lookup failed");
    let detail = format!("{what} cannot be looked up right now. Repeat the request in a moment.");
    Error::Peer(Box::new(unavailable(&detail)))
}
