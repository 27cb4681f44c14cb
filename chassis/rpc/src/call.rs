//! A call as a handler sees it: for whom it is made, until when, and its request, normalised and checked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis_base::error::status::of_problem;
use chassis_base::{Account, AccountId, Clock, Error};
use proto::api::Problem;
use proto::{At, Check, Faults};
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use crate::link::unknown_link;
use crate::token::Identity;

/// How long a call of a process to itself may take.
const INTERNAL_TIMEOUT: Duration = Duration::from_mins(1);

/// The metadata entries of a call besides the context token.
pub const REQUEST_ID: &str = "x-request-id";
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
pub const CARRIED_FAULTS: &str = "x-faults-bin";
/// Set on a read of which nobody gets more than the headers.
pub const HEAD_ONLY: &str = "x-head-only";
/// Set by a caller who takes an answer as a stream; see `admin.api.v1.HttpBody`.
pub const BODY_STREAM: &str = "x-body-stream";
/// How many times in a row automation led to a request: sent with what flows and webhooks send, and honoured by the
/// gateway as the least that it can be.
pub const AUTOMATION_DEPTH: &str = "x-automation-depth";
/// Set on the response of a repeated write.
pub const REPLAY: &str = "x-idempotent-replay";

/// Whether a request asks for headers only, as programs do that look whether a link still leads somewhere: nobody has
/// looked at what it answers.
pub fn is_head_only(metadata: &MetadataMap) -> bool {
    metadata.contains_key(HEAD_ONLY)
}

/// Whether the caller takes an answer as a stream. Whoever was built when there were none gets it in one message.
pub fn takes_stream(metadata: &MetadataMap) -> bool {
    metadata.contains_key(BODY_STREAM)
}

/// What the server knows about a call; put into the request's extensions before the handler runs.
#[derive(Clone)]
pub struct Context {
    pub identity: Arc<Identity>,
    pub request_id: Arc<str>,
    /// The full name of the rpc, the scope of idempotency keys.
    pub rpc: &'static str,
    pub idempotency_key: Option<Arc<str>>,
    pub carried: Arc<Faults>,
    pub deadline: Instant,
    pub clock: Clock,
}

impl Context {
    /// Takes a request apart: its context, and its message or the stream of its messages.
    pub fn take<R>(request: Request<R>) -> Result<(Self, R), Status> {
        let (_, mut extensions, input) = request.into_parts();
        let unknown = || of_problem(Problem::Unauthenticated, "A context token is needed.", Vec::new(), None);
        Ok((extensions.remove::<Self>().ok_or_else(unknown)?, input))
    }

    /// The context of a call that a process makes to itself, for example for a command: `actor` is what the audit log
    /// calls it. A caller that needs a key, an id or a deadline of its own sets these.
    pub fn internal(account: &Account, actor: &str, rpc: &'static str, clock: &Clock) -> Self {
        Self {
            identity: Arc::new(Identity::internal(account, actor)),
            request_id: actor.into(),
            rpc,
            idempotency_key: None,
            carried: Arc::default(),
            deadline: Instant::now() + INTERNAL_TIMEOUT,
            clock: clock.clone(),
        }
    }

    pub fn account(&self) -> &Account {
        &self.identity.account
    }

    pub fn account_id(&self) -> AccountId {
        self.identity.account.id
    }
}

/// A request with its context.
pub struct Call<R> {
    pub context: Context,
    pub input: R,
    /// The faults found so far: those the gateway carried along, then those of the generated checks.
    pub faults: Faults,
}

impl<R: Check> Call<R> {
    /// Takes a request apart, and normalises and checks its content. Faults are collected, not raised: a write looks
    /// for its idempotency key first.
    pub fn open(request: Request<R>) -> Result<Self, Status> {
        let (context, mut input) = Context::take(request)?;
        let mut faults = Faults::clone(&context.carried);
        input.check(&At::ROOT, None, &mut faults);
        Ok(Self { context, input, faults })
    }

    /// The call for the account that the link in its request names. From then on it is a call of that account: it can
    /// read and write. Only someone without a key has no account of their own; everyone else
    /// keeps theirs, and another account's link is unknown to them.
    pub fn for_account(mut self, account: Account) -> Result<Self, Error> {
        let identity = &self.context.identity;
        if identity.is_public() {
            self.context.identity = Arc::new(identity.with_account(account));
        } else if identity.account.id != account.id {
            return Err(unknown_link());
        }
        Ok(self)
    }

    /// For reads: the request, if it has no fault.
    pub fn valid(self) -> Result<(Context, R), Error> {
        if self.faults.is_empty() { Ok((self.context, self.input)) } else { Err(self.faults.into()) }
    }
}
