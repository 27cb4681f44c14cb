//! The write transaction. Every mutating rpc goes through [`Db::write`]: idempotency key, operation, events, list totals,
//! the audit log and the stored response commit together or not at all. Background work goes through [`Db::fenced`], which begins
//! with the fence of its lease instead of a key, and [`Db::note`] keeps what was found out on the way. Nothing else opens
//! a write transaction.
//!
//! Round trips besides the operation's own statements: begin, claim (keyed calls) or fence (background work), finish
//! (one statement for events, totals, audit log and response; left out when there is nothing to finish), commit. Then the
//! account's background work is woken, which costs the call nothing where the process has workers.

use std::fmt::Display;
use std::ops::AsyncFn;

use prost::{Message, Name};
use proto::Faults;
use proto::api::Problem;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use tonic::{Response, Status};
use uuid::Uuid;

use crate::account::{Account, AccountId};
use crate::audit::check::{self, Counts};
use crate::audit::{self, Cause, Trail};
use crate::call::{Call, Context, REPLAY};
use crate::caused;
use crate::clock::Clock;
use crate::db::Db;
use crate::error::Error;
use crate::idempotency::{self, Claim};
use crate::outbox::{Batch, Event, Listener};
use crate::pool::{CommitError, Purpose, Transaction};
use crate::scope::{self, Record};
use crate::totals::Totals;
use crate::worker::Lease;

/// How often a transaction that lost a race (serialisation failure, deadlock) is run again.
const ATTEMPTS: u32 = 4;

/// An open write transaction of one account.
pub struct Tx<'a> {
    connection: Transaction,
    account: &'a Account,
    cause: Cause<'a>,
    database: &'a Db,
    clock: &'a Clock,
    /// What is wrong with the request; a transaction with faults is never committed.
    pub faults: Faults,
    now: chrono::DateTime<chrono::Utc>,
    pub(crate) events: Batch,
    event_count: i64,
    /// See [`caused`].
    pub(crate) depth: u32,
    totals: Totals,
    listeners: &'a [Listener],
    trail: Trail,
    /// See [`Tx::file_under`].
    filed_under: Option<AccountId>,
    counts: Option<Counts>,
}

impl<'a> Tx<'a> {
    /// For the queries of `store`.
    pub fn db(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// The call that the transaction serves; none in background work.
    pub fn caller(&self) -> Option<&'a Context> {
        self.cause.call()
    }

    pub fn account(&self) -> AccountId {
        self.account.id
    }

    /// The account's time zone, country and currency.
    pub fn settings(&self) -> &'a Account {
        self.account
    }

    /// The time of this transaction: the same for every row and event that it makes.
    pub fn now(&self) -> chrono::DateTime<chrono::Utc> {
        self.now
    }

    /// The day of this transaction in the account's time zone.
    pub fn today(&self) -> chrono::NaiveDate {
        self.now.with_timezone(&self.account.timezone).date_naive()
    }

    /// A new id of this moment.
    pub fn id(&self) -> Uuid {
        self.clock.id()
    }

    /// Ends the operation if the request has a fault. To be called when all faults have been collected.
    pub fn valid(&mut self) -> Result<(), Error> {
        if self.faults.is_empty() { Ok(()) } else { Err(std::mem::take(&mut self.faults).into()) }
    }

    /// Records an event; it is delivered to its listeners after the commit.
    pub fn emit(&mut self, event: &Event) {
        self.emit_from(event, event.entity_id);
    }

    /// The same for an event that another record than its entity led to, such as an invoice to one about its client.
    pub fn emit_from(&mut self, event: &Event, origin: Uuid) {
        self.events.add(self.clock.id(), self.event_count, (event, origin), self.listeners);
        self.event_count += 1;
    }

    /// Counts an entry into (`1`) or out of (`-1`) a list, under the day it was created on.
    pub fn count(&mut self, list: &str, created: chrono::DateTime<chrono::Utc>, by: i64) {
        self.totals.add(list, created.date_naive(), by);
    }

    /// Keeps in the audit log that this record was made or changed. `message` is the record as it is now; say it last, or
    /// again, when it changes more than once. An rpc that says nothing has written what it answers with.
    pub fn changed<M: Message + Name>(&mut self, entity_type: &str, id: impl Display, message: &M) {
        self.trail.changed(entity_type, &id, message);
    }

    /// Keeps in the audit log that this record was removed.
    pub fn removed(&mut self, entity_type: &str, id: impl Display) {
        self.trail.removed(entity_type, &id);
    }

    /// Says that what this transaction writes is no change of a record, and why. What is kept all the same is kept.
    pub fn unaudited(&mut self, why: &'static str) {
        self.trail.nothing = Some(why);
    }

    /// For who changes the records of an account that the call is not for: the log is that account's.
    pub fn file_under(&mut self, account: AccountId) {
        self.trail.file_under(account);
        self.filed_under = Some(account);
    }

    /// Commits what the operation has done together with what goes with it, or undoes it all: when the operation has
    /// failed, and when the request has faults. Whoever gives up before this has closed the connection.
    async fn end<T>(
        mut self,
        outcome: Result<T, Error>,
        response: Option<&[u8]>,
        record: Option<Record>,
    ) -> Result<T, Error> {
        let finished = async {
            let outcome = outcome?;
            self.valid()?;
            finish(&mut self, response).await?;
            Ok(outcome)
        };
        match finished.await {
            Ok(outcome) => self.commit(record).await.map(|()| outcome),
            Err(error) => {
                self.connection.roll_back();
                Err(error)
            }
        }
    }

    async fn commit(self, record: Option<Record>) -> Result<(), Error> {
        // What the service writes down for itself is no effect of the call that gave rise to it.
        let effect = self.caller().map(|_| scope::effect()).unwrap_or_default();
        effect.commits(record.clone());
        let committed = match self.connection.commit().await {
            Ok(()) => {
                effect.committed();
                Ok(())
            }
            Err(CommitError::Refused(error)) => {
                effect.refused();
                return Err(error.into());
            }
            Err(CommitError::Unknown(error)) => {
                tracing::warn!(%error, "it is not known whether a transaction was committed");
                Err(Error::InDoubt(record))
            }
        };
        for account in std::iter::once(self.account.id).chain(self.filed_under) {
            self.database.wake_workers(account).await;
        }
        committed
    }
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
        let Call { context, input, faults } = call;
        let fingerprint = context.idempotency_key.as_ref().map(|_| fingerprint(&input, &context.carried));
        self.attempts(&context, &input, &faults, fingerprint.as_ref(), &operation).await
    }

    /// The same for an operation that needs more than its request: what was looked up before it began.
    pub async fn write_with<R, S, T, E, F>(
        &self,
        call: Call<R>,
        with: S,
        operation: F,
    ) -> Result<Response<T>, Status>
    where
        R: Message,
        T: Message + Default,
        E: Into<Error>,
        F: AsyncFn(&mut Tx<'_>, &(R, S)) -> Result<T, E>,
    {
        let Call { context, input, faults } = call;
        let fingerprint = context.idempotency_key.as_ref().map(|_| fingerprint(&input, &context.carried));
        self.attempts(&context, &(input, with), &faults, fingerprint.as_ref(), &operation).await
    }

    async fn attempts<I, T, E, F>(
        &self,
        context: &Context,
        input: &I,
        faults: &Faults,
        fingerprint: Option<&[u8; 32]>,
        operation: &F,
    ) -> Result<Response<T>, Status>
    where
        T: Message + Default,
        E: Into<Error>,
        F: AsyncFn(&mut Tx<'_>, &I) -> Result<T, E>,
    {
        let mut attempt = 1;
        loop {
            match self.attempt(context, input, faults, fingerprint, operation).await {
                Err(error) if may_repeat(&error, attempt) => attempt += 1,
                outcome => return Ok(outcome?),
            }
        }
    }

    /// A second transaction of a call that [`write`](Self::write) has run: for what can only be known after the first
    /// has committed. `answer` takes the place of the answer that repeats of the call get. `operation` is as for `write`.
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
        let stored = context.idempotency_key.as_ref().map(|_| answer.encode_to_vec());
        let mut attempt = 1;
        loop {
            let mut tx = self.begin(context.account(), Cause::Call(context)).await?;
            let outcome = operation(&mut tx, input).await.map_err(Into::into);
            let outcome = tx.end(outcome, stored.as_deref(), None).await;
            match outcome {
                Err(error) if may_repeat(&error, attempt) => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    /// Runs a write that nobody asked for and no lease stands behind: what was found out while something else was done.
    /// `operation` is as for [`write`](Self::write).
    pub async fn note<R, T, E, F>(&self, account: &Account, input: &R, operation: F) -> Result<T, Error>
    where
        E: Into<Error>,
        F: AsyncFn(&mut Tx<'_>, &R) -> Result<T, E>,
    {
        let mut attempt = 1;
        loop {
            let mut tx = self.begin(account, Cause::Note).await?;
            let outcome = operation(&mut tx, input).await.map_err(Into::into);
            let outcome = tx.end(outcome, None, None).await;
            match outcome {
                Err(error) if may_repeat(&error, attempt) => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    /// Runs a write of background work for the account that the lease covers, if the lease is still held: otherwise
    /// [`Error::LeaseLost`], and nothing is written. `operation` may run more than once and so must have no effect
    /// outside the transaction.
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
        let mut attempt = 1;
        loop {
            match self.fenced_attempt(lease, account, input, &operation).await {
                Err(error) if may_repeat(&error, attempt) => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    async fn begin<'a>(&'a self, account: &'a Account, cause: Cause<'a>) -> Result<Tx<'a>, Error> {
        let is_public = cause.call().is_some_and(|caller| caller.identity.is_public());
        if is_public && account.id.uuid().is_nil() {
            return Err(Error::Internal(
                "a write for nobody: the link of a public call was not followed".into(),
            ));
        }
        let background = matches!(cause, Cause::Worker(_)) || scope::purpose().background;
        let purpose = Purpose { account: Some(account.id), background, writes: true };
        let mut connection = self.pool.begin(purpose).await?;
        let counts = check::counts(&mut connection).await?;
        Ok(Tx {
            connection,
            account,
            cause,
            database: self,
            clock: &self.clock,
            faults: Faults::default(),
            now: self.clock.now(),
            events: Batch::default(),
            event_count: 0,
            depth: cause.call().map_or(0, |caller| caller.identity.depth),
            totals: Totals::default(),
            listeners: &self.listeners,
            trail: Trail::default(),
            filed_under: None,
            counts,
        })
    }

    async fn attempt<R, T, E, F>(
        &self,
        context: &Context,
        input: &R,
        faults: &Faults,
        fingerprint: Option<&[u8; 32]>,
        operation: &F,
    ) -> Result<Response<T>, Error>
    where
        T: Message + Default,
        E: Into<Error>,
        F: AsyncFn(&mut Tx<'_>, &R) -> Result<T, E>,
    {
        let mut tx = self.begin(context.account(), Cause::Call(context)).await?;
        tx.faults = faults.clone();
        if let Some(fingerprint) = fingerprint {
            match idempotency::claim(&mut tx.connection, context, fingerprint, tx.now).await {
                Ok(Claim::Ours) => {}
                Ok(Claim::Done(stored)) => {
                    tx.connection.roll_back();
                    return replay(&stored);
                }
                Ok(Claim::Reused) => {
                    let detail =
                        "This Idempotency-Key was used for another request. Use a new key for a new request.";
                    return tx
                        .end(Err(Error::problem(Problem::IdempotencyKeyReused, detail)), None, None)
                        .await;
                }
                Err(error) => return tx.end(Err(error), None, None).await,
            }
        }
        let outcome = operation(&mut tx, input).await.map_err(Into::into);
        let (mut stored, mut record) = (None, None);
        if let Ok(message) = &outcome {
            tx.trail.answered(context.rpc, message);
            let kept = || idempotency::kept(context.rpc, message.encode_to_vec(), tx.trail.first());
            stored = fingerprint.map(|_| kept());
            record = audit::record(context.rpc, message).or_else(|| tx.trail.only());
        }
        tx.end(outcome, stored.as_deref(), record).await.map(Response::new)
    }

    async fn fenced_attempt<R, T, E, F>(
        &self,
        lease: &Lease,
        account: &Account,
        input: &R,
        operation: &F,
    ) -> Result<T, Error>
    where
        E: Into<Error>,
        F: AsyncFn(&mut Tx<'_>, &R) -> Result<T, E>,
    {
        let mut tx = self.begin(account, Cause::Worker(lease.worker())).await?;
        let outcome = match lease.hold(&mut tx.connection, account.id).await {
            Ok(()) => operation(&mut tx, input).await.map_err(Into::into),
            Err(error) => Err(error),
        };
        tx.end(outcome, None, None).await
    }
}

fn may_repeat(error: &Error, attempt: u32) -> bool {
    let repeat = error.is_repeatable() && attempt < ATTEMPTS;
    if repeat {
        tracing::debug!(attempt, "transaction lost a race, running it again");
    }
    repeat
}

/// Writes everything that goes with the operation in one statement.
async fn finish(tx: &mut Tx<'_>, response: Option<&[u8]>) -> Result<(), Error> {
    let unaudited = tx.trail.nothing.is_some();
    let audit = std::mem::take(&mut tx.trail).rows(tx.clock);
    let method = tx.cause.method();
    if audit.is_empty() && !unaudited {
        check::refuse_unaudited(&mut tx.connection, tx.counts.as_ref(), &method).await?;
    }
    if tx.events.is_empty() && tx.totals.is_empty() && audit.is_empty() && response.is_none() {
        return Ok(());
    }
    let account = tx.account();
    let depths = caused::depths(tx).await?;
    caused::remember(tx, &audit).await?;
    let (lists, buckets, slots, entries) = tx.totals.rows();
    sqlx::query(
        "with events as (
            insert into outbox
                (account_id, listener, entity_type, entity_id, sequence, id, type, data, depth, occurred_at, next_at)
            select $1, listener, entity_type, entity_id, sequence, id, type, data, depth, $2, $2
            from unnest($3::text[], $4::text[], $5::uuid[], $6::bigint[], $7::uuid[], $8::text[], $9::text[],
                        $17::integer[])
                as event (listener, entity_type, entity_id, sequence, id, type, data, depth)
        ), totals as (
            insert into total (account_id, list, bucket, slot, entries)
            select $1, list, bucket, slot, entries
            from unnest($10::text[], $11::date[], $12::smallint[], $13::bigint[]) as t (list, bucket, slot, entries)
            order by list, bucket, slot
            on conflict (account_id, list, bucket, slot) do update set entries = total.entries + excluded.entries
        ), trail as (
            insert into audit
                (account_id, id, at, actor, request_id, method, entity_type, entity_id, message, image)
            select $18, id, $2, $19, $20, $21, entity_type, entity_id, message, image
            from unnest($22::uuid[], $23::text[], $24::text[], $25::text[], $26::bytea[])
                as entry (id, entity_type, entity_id, message, image)
        )
        update idempotency set response = $14 where account_id = $1 and route = $15 and key = $16",
    )
    .bind(account)
    .bind(tx.now)
    .bind(&tx.events.listeners)
    .bind(&tx.events.entity_types)
    .bind(&tx.events.entity_ids)
    .bind(&tx.events.sequences)
    .bind(&tx.events.ids)
    .bind(&tx.events.kinds)
    .bind(&tx.events.data)
    .bind(lists)
    .bind(buckets)
    .bind(slots)
    .bind(entries)
    .bind(response)
    .bind(tx.caller().map(|context| context.rpc))
    .bind(response.and(tx.caller()).and_then(|context| context.idempotency_key.as_deref()))
    .bind(depths)
    .bind(audit.account.unwrap_or(account))
    .bind(tx.cause.actor())
    .bind(tx.cause.request_id())
    .bind(&method)
    .bind(&audit.ids)
    .bind(&audit.entity_types)
    .bind(&audit.entity_ids)
    .bind(&audit.messages)
    .bind(&audit.images)
    .execute(&mut *tx.connection)
    .await?;
    Ok(())
}

fn replay<T: Message + Default>(stored: &[u8]) -> Result<Response<T>, Error> {
    let message =
        T::decode(stored).map_err(|error| Error::Internal(format!("a stored response: {error}")))?;
    let mut response = Response::new(message);
    response.metadata_mut().insert(REPLAY, tonic::metadata::MetadataValue::from_static("true"));
    Ok(response)
}

/// What makes two requests the same: the content, and what of it could not be read. The rpc is part of the key.
fn fingerprint(input: &impl Message, carried: &Faults) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(input.encode_to_vec());
    for fault in carried.entries() {
        hash.update(fault.encode_length_delimited_to_vec());
    }
    hash.finalize().into()
}
