//! Calls to other services of the mesh, made for an account. Made before a transaction begins, never inside one.

use std::time::{Duration, Instant};

use chassis_base::error::status::unavailable;
use chassis_base::{Account, Clock, Error};
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::call::Context;
use crate::peer::Peers;
use crate::token::{self, Tokens};

/// No other service takes this long, whatever the caller's own deadline.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What calls to other services are made with. Cheap to clone.
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

    /// The way to a service.
    pub fn channel(&self, service: &str) -> Result<Channel, Error> {
        let peer = self.peers.get(service);
        let peer =
            peer.ok_or_else(|| Error::Internal(format!("the service {service} is not among the PEERS")))?;
        Ok(peer.channel())
    }

    /// A request to a service for the account that ends with the call it is made for.
    pub fn request<T>(
        &self,
        service: &str,
        account: &Account,
        deadline: Instant,
        message: T,
    ) -> Result<Request<T>, Error> {
        self.request_at(service, Cause { account, depth: 0 }, deadline, message)
    }

    /// A request to a service that changes something, for the call that it is made for: what comes of it is as deep in a
    /// chain of automation.
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
            .map_err(|_| Error::Internal("a token that is not a header value".to_owned()))?;
        request.metadata_mut().insert(token::HEADER, token);
        Ok(request)
    }
}

/// What a request is made for.
#[derive(Clone, Copy)]
struct Cause<'a> {
    account: &'a Account,
    /// How many events in a row led to it.
    depth: u32,
}

/// A service that did not answer as it should: whatever went wrong there, nothing was done here. `what` cannot be looked
/// up, for example `Clients`.
pub fn lookup_failed(service: &str, what: &str, status: &Status) -> Error {
    tracing::warn!(service, code = ?status.code(), message = status.message(), "a service did not answer");
    let detail = format!("{what} cannot be looked up right now. Repeat the request in a moment.");
    Error::Peer(Box::new(unavailable(&detail)))
}
