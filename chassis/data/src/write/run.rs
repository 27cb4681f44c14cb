//! The functions that run operations in write transactions, one for each origin.

use std::ops::AsyncFn;

use chassis_base::{Account, Error};
use chassis_rpc::call::{Call, Context, REHEARSAL, REPLAY};
use prost::Message;
use proto::api::Rehearsal;
use tonic::metadata::MetadataValue;
use tonic::{Response, Status};

use super::attempts::{Attempts, Ended};
use super::finish::Kept;
use super::lazy::LazyTx;
use super::operation::{Lazily, LazilyOfBoth, Of, OfBoth, Operation};
use super::plan::Plan;
use super::tx::Tx;
use crate::db::Db;
use crate::idempotency::{self, fingerprint};
use crate::lease::Lease;
use crate::log::changes;
use crate::origin::Origin;

/// The result of a successful transaction.
pub(super) enum Done<T> {
    /// The operation has run now.
    Now(T),
    /// A call with the same idempotency key has run before; this is its stored response.
    Before(Vec<u8>),
    /// The operation has run and was undone.
    Undone(T, Rehearsal),
}

impl Db {
    /// Runs a mutating rpc. `operation` may run more than once and so must have no effect outside the transaction.
    pub async fn write<R, T, E, F>(&self, call: Call<R>, operation: F) -> Result<Response<T>, Status>
    where
        R: Message,
        T: Message + Default,
        E: Into<Error>,
        F: AsyncFn(&mut Tx<'_>, &R) -> Result<T, E>,
    {
        let operation = Of { input: &call.input, function: &operation };
        self.call(&call, &operation).await
    }

    /// Like [`write`](Self::write), for an operation that opens a transaction only if it needs one; see [`LazyTx`].
    pub async fn write_lazily<R, T, E, F>(&self, call: Call<R>, operation: F) -> Result<Response<T>, Status>
    where
        R: Message,
        T: Message + Default,
        E: Into<Error>,
        F: AsyncFn(&mut LazyTx<'_>, &R) -> Result<T, E>,
    {
        let operation = Lazily { input: &call.input, function: &operation };
        self.call(&call, &operation).await
    }

    /// Like [`write`](Self::write), for an operation that also needs values that were looked up before.
    pub async fn write_with<R, P, T, E, F>(
        &self,
        call: Call<R>,
        prepared: P,
        operation: F,
    ) -> Result<Response<T>, Status>
    where
        R: Message,
        T: Message + Default,
        E: Into<Error>,
        F: AsyncFn(&mut Tx<'_>, &R, &P) -> Result<T, E>,
    {
        let operation = OfBoth { input: &call.input, prepared: &prepared, function: &operation };
        self.call(&call, &operation).await
    }

    /// Like [`write_lazily`](Self::write_lazily), for an operation that also needs values that were looked up before.
    pub async fn write_lazily_with<R, P, T, E, F>(
        &self,
        call: Call<R>,
        prepared: P,
        operation: F,
    ) -> Result<Response<T>, Status>
    where
        R: Message,
        T: Message + Default,
        E: Into<Error>,
        F: AsyncFn(&mut LazyTx<'_>, &R, &P) -> Result<T, E>,
    {
        let operation = LazilyOfBoth { input: &call.input, prepared: &prepared, function: &operation };
        self.call(&call, &operation).await
    }

    async fn call<R, O>(&self, call: &Call<R>, operation: &O) -> Result<Response<O::Answer>, Status>
    where
        R: Message,
        O: Operation<Answer: Message + Default>,
    {
        let Call { context, input, faults } = call;
        let fingerprint =
            context.idempotency_key.as_ref().map(|_| fingerprint(&input.encode_to_vec(), &context.carried));
        let origin = Origin::Call { context, faults, fingerprint: fingerprint.as_ref() };
        let is_stored = fingerprint.is_some();
        let kept = |plan: &mut Plan<'_>, answer: &O::Answer| {
            kept(plan, context.rpc, answer.encode_to_vec(), is_stored)
        };
        match self.run(context.account(), origin, operation, kept).await? {
            Done::Now(answer) => Ok(Response::new(answer)),
            Done::Before(stored) => Ok(replay(&stored)?),
            Done::Undone(answer, rehearsal) => Ok(rehearsed(answer, &rehearsal)),
        }
    }

    /// Runs a second transaction of a call after [`write`](Self::write), for results that exist only after the first
    /// has committed. `answer` replaces the response that repeats of the call get. `operation` is as for `write`.
    pub async fn amend<R, T, E, F>(
        &self,
        context: &Context,
        input: &R,
        answer: &T,
        operation: F,
    ) -> Result<(), Error>
    where
        T: Message,
        E: Into<Error>,
        F: AsyncFn(&mut Tx<'_>, &R) -> Result<(), E>,
    {
        // What was undone has nothing that could be amended.
        if context.dry_run {
            return Ok(());
        }
        let stored = context.idempotency_key.as_ref().map(|_| answer.encode_to_vec());
        let kept = |_: &mut Plan<'_>, (): &()| Kept { response: stored.clone(), record: None };
        let operation = Of { input, function: &operation };
        self.run(context.account(), Origin::Amendment { context }, &operation, kept).await?.now()
    }

    /// Runs a write without a call or a lease, for what the service finds while it does something else. `operation` is
    /// as for [`write`](Self::write).
    pub async fn record<R, T, E, F>(&self, account: &Account, input: &R, operation: F) -> Result<T, Error>
    where
        E: Into<Error>,
        F: AsyncFn(&mut Tx<'_>, &R) -> Result<T, E>,
    {
        let operation = Of { input, function: &operation };
        self.run(account, Origin::Service, &operation, nothing).await?.now()
    }

    /// Runs a write of background work for an account that the lease covers. If the lease is no longer held, this
    /// returns [`Error::LeaseLost`] and writes nothing. `operation` is as for [`write`](Self::write).
    pub async fn fenced<R, T, E, F>(
        &self,
        lease: &Lease,
        account: &Account,
        input: &R,
        operation: F,
    ) -> Result<T, Error>
    where
        E: Into<Error>,
        F: AsyncFn(&mut Tx<'_>, &R) -> Result<T, E>,
    {
        let operation = Of { input, function: &operation };
        self.run(account, Origin::Work { lease }, &operation, nothing).await?.now()
    }

    /// Runs the operation, and repeats it from the beginning while its write loses races.
    async fn run<O: Operation>(
        &self,
        account: &Account,
        origin: Origin<'_>,
        operation: &O,
        kept: impl Fn(&mut Plan<'_>, &O::Answer) -> Kept,
    ) -> Result<Done<O::Answer>, Error> {
        let mut attempts = Attempts::new(self, account, origin);
        if let Some(stored) = attempts.before().await? {
            return Ok(Done::Before(stored));
        }
        loop {
            let (mut tx, begun) = attempts.begin().await?;
            let outcome = match begun {
                Ok(()) => operation.run(&mut tx).await,
                Err(error) => Err(error),
            };
            let (kept, answer) = match outcome {
                Ok(answer) => (Ok(kept(&mut tx, &answer)), Some(answer)),
                Err(error) => (Err(error), None),
            };
            let done = match attempts.end(tx, kept).await? {
                Ended::Before(stored) => return Ok(Done::Before(stored)),
                Ended::Raced => continue,
                Ended::Now => answer.map(Done::Now),
                Ended::Undone(rehearsal) => answer.map(|answer| Done::Undone(answer, rehearsal)),
            };
            return done.ok_or_else(|| Error::Internal("a write that failed was committed".into()));
        }
    }
}

impl<T> Done<T> {
    /// The answer of a transaction without an idempotency key, which cannot be a repeat.
    fn now(self) -> Result<T, Error> {
        match self {
            Self::Now(answer) | Self::Undone(answer, _) => Ok(answer),
            Self::Before(_) => Err(Error::Internal("a write without a key was replayed".into())),
        }
    }
}

/// What is kept of the encoded answer of an rpc, whose records are changes unless the operation has reported others.
fn kept(plan: &mut Plan<'_>, rpc: &'static str, answer: Vec<u8>, is_stored: bool) -> Kept {
    plan.changes.answered(rpc, &answer);
    let record = changes::record(rpc, &answer).or_else(|| plan.changes.only());
    let response = is_stored.then(|| idempotency::kept(rpc, answer, plan.changes.first()));
    Kept { response, record }
}

/// For writes without a caller: there is no response to store.
fn nothing<T>(_: &mut Plan<'_>, _: &T) -> Kept {
    Kept::default()
}

fn rehearsed<T>(answer: T, rehearsal: &Rehearsal) -> Response<T> {
    let mut response = Response::new(answer);
    let value = MetadataValue::from_bytes(&rehearsal.encode_to_vec());
    response.metadata_mut().insert_bin(REHEARSAL, value);
    response
}

fn replay<T: Message + Default>(stored: &[u8]) -> Result<Response<T>, Error> {
    let message =
        T::decode(stored).map_err(|error| Error::Internal(format!("bad stored response: {error}")))?;
    let mut response = Response::new(message);
    response.metadata_mut().insert(REPLAY, MetadataValue::from_static("true"));
    Ok(response)
}
