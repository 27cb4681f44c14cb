//! A call as a handler receives it: its account and caller, its deadline, and its request, normalised and checked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis_base::error::status::of_problem;
use chassis_base::{Account, AccountId, Clock, Error};
use proto::api::{Precondition, Problem};
use proto::{At, Check, Faults};
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use crate::link::unknown_link;
use crate::token::Identity;

/// The deadline of a call that a process makes to itself.
const INTERNAL_TIMEOUT: Duration = Duration::from_mins(1);

// The metadata entries of a call besides the context token.

pub const REQUEST_ID: &str = "x-request-id";
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
pub const CARRIED_FAULTS: &str = "x-faults-bin";
/// What a call's path begins with if it is to be carried out and then undone. In the path and not in the metadata, so that
/// a program of a release without it refuses the call instead of carrying it out.
pub const DRY_RUN: &str = "/dry-run";
/// What the path of a call with a precondition begins with, after [`DRY_RUN`], for the same reason.
pub const CONDITIONAL: &str = "/conditional";
/// What the path of a list begins with if all of it is asked for, as a stream of pages. In the path for the same reason.
pub const EXPORT: &str = "/export";
/// Set on the response of a call with [`DRY_RUN`]: an encoded `admin.api.v1.Rehearsal`.
pub const REHEARSAL: &str = "x-rehearsal-bin";
/// What must hold for a write: an encoded `admin.api.v1.Precondition`.
pub const PRECONDITION: &str = "x-precondition-bin";
/// Set on a read whose caller receives only the headers.
pub const HEAD_ONLY: &str = "x-head-only";
/// Set by a caller that accepts a streamed response; see `admin.api.v1.HttpBody`.
pub const BODY_STREAM: &str = "x-body-stream";
/// The length of the chain of automation that led to a request. Flows and webhooks send it; the gateway takes it as a
/// lower bound.
pub const AUTOMATION_DEPTH: &str = "x-automation-depth";
/// Set on the response of a repeated write.
pub const REPLAY: &str = "x-idempotent-replay";

/// Whether a request asks for headers only, as link checkers do. Such a request does not count as a view.
pub fn is_head_only(metadata: &MetadataMap) -> bool {
    metadata.contains_key(HEAD_ONLY)
}

/// Whether the caller accepts a streamed response. A caller from a release without streams gets one message.
pub fn takes_stream(metadata: &MetadataMap) -> bool {
    metadata.contains_key(BODY_STREAM)
}

/// The context of a call, which the server puts into the request's extensions before the handler runs.
#[derive(Clone)]
pub struct Context {
    pub identity: Arc<Identity>,
    pub request_id: Arc<str>,
    /// The full name of the rpc, the scope of idempotency keys.
    pub rpc: &'static str,
    pub idempotency_key: Option<Arc<str>>,
    pub carried: Arc<Faults>,
    /// Checked by the write transaction.
    pub precondition: Option<Arc<Precondition>>,
    /// Whether what it does is undone: the write transaction rolls back, and nothing may be done after it.
    pub dry_run: bool,
    pub deadline: Instant,
    pub clock: Clock,
}

impl Context {
    /// Splits a request into its context and its message or stream of messages.
    pub fn take<R>(request: Request<R>) -> Result<(Self, R), Status> {
        let (_, mut extensions, input) = request.into_parts();
        let unknown = || of_problem(Problem::Unauthenticated, "A context token is needed.", Vec::new(), None);
        Ok((extensions.remove::<Self>().ok_or_else(unknown)?, input))
    }

    /// The context of a call that a process makes to itself, for example for a command. `actor` is its name in the
    /// audit log. The caller may replace the idempotency key, the request id and the deadline.
    pub fn internal(account: &Account, actor: &str, rpc: &'static str, clock: &Clock) -> Self {
        Self {
            identity: Arc::new(Identity::internal(account, actor)),
            request_id: actor.into(),
            rpc,
            idempotency_key: None,
            carried: Arc::default(),
            precondition: None,
            dry_run: false,
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
    /// The faults found so far: those that the gateway sent, then those of the generated checks.
    pub faults: Faults,
}

impl<R: Check> Call<R> {
    /// Splits a request, and normalises and checks its content. Faults are collected, not returned, because a write
    /// looks up its idempotency key first.
    pub fn open(request: Request<R>) -> Result<Self, Status> {
        let (context, mut input) = Context::take(request)?;
        let mut faults = Faults::clone(&context.carried);
        input.check(&At::ROOT, None, &mut faults);
        Ok(Self { context, input, faults })
    }

    /// Moves the call to the account that the link in its request names, so that it can read and write there. Only a
    /// caller without a key has no account; every other caller keeps theirs, and gets NOT_FOUND for another account's
    /// link.
    pub fn for_account(mut self, account: Account) -> Result<Self, Error> {
        let identity = &self.context.identity;
        if identity.is_public() {
            self.context.identity = Arc::new(identity.with_account(account));
        } else if identity.account.id != account.id {
            return Err(unknown_link());
        }
        Ok(self)
    }

    /// For reads: the request, or its faults as an error.
    pub fn valid(self) -> Result<(Context, R), Error> {
        if self.faults.is_empty() { Ok((self.context, self.input)) } else { Err(self.faults.into()) }
    }
}
