//! The attempts of one write: what happens before and after its operation. The operation is compiled for every rpc, and
//! this once: its futures are boxed, because the compiler makes the code of an `async fn` anew in each crate that awaits it.

use std::future::ready;

use chassis_base::{Account, Error};
use chassis_rpc::scope;
use futures::future::BoxFuture;
use proto::Faults;
use proto::api::Rehearsal;
use sqlx::PgConnection;

use super::collision::Collision;
use super::finish::Kept;
use super::lazy::LazyTx;
use super::plan::Plan;
use crate::db::Db;
use crate::idempotency;
use crate::log::changes::Changes;
use crate::origin::Origin;
use crate::totals::Totals;

/// How often an operation is run in total when its write loses races (serialisation failure, deadlock).
const MAX_ATTEMPTS: u32 = 4;

/// An attempt, and whether its transaction could be opened, if it needs one.
type Begun<'a> = (LazyTx<'a>, Result<(), Error>);

/// How an attempt has ended.
pub(super) enum Ended {
    /// It has committed.
    Now,
    /// It was a dry run, and did this.
    Undone(Rehearsal),
    /// A call with the same idempotency key has run before; this is its stored response.
    Before(Vec<u8>),
    /// It has lost a race, and the operation is to run again.
    Raced,
}

pub(super) struct Attempts<'a> {
    database: &'a Db,
    account: &'a Account,
    origin: Origin<'a>,
    collision: Collision,
    /// How many have begun.
    begun: u32,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(database: &'a Db, account: &'a Account, origin: Origin<'a>) -> Self {
        Self { database, account, origin, collision: Collision::default(), begun: 0 }
    }

    /// The stored response, if this is a dry run with the key of an earlier call: it stores no key, and so would not
    /// notice that it is a repeat.
    pub(super) fn before(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, Error>> {
        if scope::is_dry_run() { Box::pin(self.response_to_first()) } else { Box::pin(ready(Ok(None))) }
    }

    /// Begins the next attempt.
    pub(super) fn begin(&mut self) -> BoxFuture<'_, Result<Begun<'a>, Error>> {
        Box::pin(async {
            self.begun += 1;
            let mut tx = LazyTx::new(self.plan()?);
            // Once: a transaction would take the number that another call in line expects. If another process goes on to
            // take numbers too, preparing everything for a number that is then lost is worse.
            let stands_anew = self.collision.take_number() && self.begun == 2;
            let begun = tx.begin(self.begun == 1 || stands_anew).await;
            Ok((tx, begun))
        })
    }

    /// Ends an attempt; `outcome` is that of the operation.
    pub(super) fn end<'s>(
        &'s mut self,
        tx: LazyTx<'s>,
        outcome: Result<Kept, Error>,
    ) -> BoxFuture<'s, Result<Ended, Error>> {
        Box::pin(async {
            match end(tx, outcome).await {
                Err(error) => self.failed(error).await,
                ended => ended,
            }
        })
    }

    /// What follows from an attempt that failed.
    async fn failed(&mut self, error: Error) -> Result<Ended, Error> {
        // It may have failed because it is a repeat.
        if let Some(stored) = self.response_to_failed(&error).await? {
            return Ok(Ended::Before(stored));
        }
        if !error.is_repeatable() || self.begun == MAX_ATTEMPTS {
            return Err(error);
        }
        tracing::debug!(attempt = self.begun, "transaction lost a race, repeating it");
        if self.begun > 1 {
            Box::pin(self.database.mend(self.account, &self.collision)).await?;
        }
        Ok(Ended::Raced)
    }

    /// The response to an earlier call with the key of this one.
    async fn response_to_first(&self) -> Result<Option<Vec<u8>>, Error> {
        let Origin::Call { context, fingerprint: Some(fingerprint), .. } = self.origin else {
            return Ok(None);
        };
        let now = self.database.clock.now();
        let find = async |connection: &mut PgConnection| {
            idempotency::find(connection, context, fingerprint, now).await
        };
        self.database.read(find).await
    }

    /// The response to an earlier call with the key of this one, which has failed.
    async fn response_to_failed(&self, error: &Error) -> Result<Option<Vec<u8>>, Error> {
        if matches!(error, Error::InDoubt(_)) || error.is_database_unreachable() {
            return Ok(None);
        }
        match self.response_to_first().await {
            // The call has failed for its own reason.
            Err(Error::Database(_)) => Ok(None),
            found => found,
        }
    }

    fn plan(&self) -> Result<Plan<'a>, Error> {
        let Self { database, account, origin, .. } = *self;
        let is_public = origin.call().is_some_and(|caller| caller.identity.is_public());
        if is_public && account.id.uuid().is_nil() {
            return Err(Error::Internal(
                "a public call wrote before its link was resolved to an account".into(),
            ));
        }
        Ok(Plan {
            account,
            origin,
            database,
            clock: &database.clock,
            faults: match origin {
                Origin::Call { faults, .. } => faults.clone(),
                _ => Faults::default(),
            },
            now: database.clock.now(),
            events: Vec::new(),
            depth: origin.call().map_or(0, |caller| caller.identity.depth),
            totals: Totals::default(),
            changes: Changes::default(),
            filed_under: None,
            counts: None,
            collision: self.collision.clone(),
            turns: Vec::new(),
            expects_amendment: false,
            deferred: None,
            expected: None,
            took: Vec::new(),
            referred: Vec::new(),
        })
    }
}

/// Commits what an attempt has done, or undoes it: after a failure, and in a dry run.
pub(super) async fn end(tx: LazyTx<'_>, outcome: Result<Kept, Error>) -> Result<Ended, Error> {
    if scope::is_dry_run() {
        return tx.tx.undo(outcome).await.map(Ended::Undone);
    }
    tx.end(outcome).await.map(|()| Ended::Now)
}
