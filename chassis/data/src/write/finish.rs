//! The end of a write transaction: log entries, totals and response, then the commit and the wake-up.

use chassis_base::Error;
use chassis_base::error::RecordRef;
use chassis_base::error::database::{is_integrity_violation, is_null_in};
use chassis_rpc::scope::{self, Effect};
use uuid::Uuid;

use super::last::LastStatement;
use super::lazy::LazyTx;
use super::plan::Plan;
use super::statement::Response;
use super::tx::Tx;
use crate::caused;
use crate::log::check;
use crate::origin::Origin;
use crate::pool::CommitError;
use crate::wake::Logged;

/// What is stored about an operation besides its rows.
#[derive(Default)]
pub(super) struct Kept {
    /// The response that repeats of the call get.
    pub response: Option<Vec<u8>>,
    /// The record that the operation changed.
    pub record: Option<RecordRef>,
}

impl LazyTx<'_> {
    /// Like [`Tx::end`], also for a write whose transaction is not open.
    pub(super) async fn end(self, outcome: Result<Kept, Error>) -> Result<(), Error> {
        let Self { tx, number_request, mut place } = self;
        if tx.connection.is_begun() {
            tx.end(outcome).await?;
        } else {
            let kept = outcome?;
            if let Some(place) = &mut place
                && let Err(error) = place.wait().await
            {
                tx.plan.collision.refuse_number();
                return Err(error);
            }
            Box::pin(tx.plan.write_at_once(kept, place.is_some())).await?;
        }
        if let Some(number_request) = number_request {
            number_request.committed();
        }
        if let Some(place) = place {
            place.committed();
        }
        Ok(())
    }
}

impl Plan<'_> {
    /// Stores everything with a statement that commits by itself. `in_line`: its number is one that it stands in line for.
    async fn write_at_once(mut self, kept: Kept, in_line: bool) -> Result<(), Error> {
        self.valid()?;
        let (changes, events) = (std::mem::take(&mut self.changes), std::mem::take(&mut self.events));
        if changes.is_empty() && changes.nothing.is_none() && self.deferred.is_some() {
            return Err(check::unaudited(&self.origin.method(), "a record"));
        }
        let events = events.into_iter().map(|event| (event, 0)).collect();
        let response = kept.response.as_ref().map(|_| Response::FirstOrFail);
        let mut last = LastStatement::new(&mut self, changes, events, response)?;
        if last.is_nothing() {
            return Ok(());
        }
        let logged = self.logged(last.has_entries());
        let connection = self.database.pool.single(self.purpose()).await?;
        let effect = self.effect();
        effect.commits(kept.record.clone());
        let executed = connection.execute(last.statement(&self, kept.response.as_deref())).await;
        let executed = executed.map(|_| ());
        self.ended(&effect, executed, kept.record, logged).await.map_err(|error| match error {
            // A transaction finds out what is the matter.
            Error::Database(error) if is_integrity_violation(&error) => {
                if in_line && is_null_in(&error, "counter") {
                    self.collision.refuse_number();
                }
                Error::Raced
            }
            Error::Database(error) => last.failed(&self, error),
            error => error,
        })
    }

    fn logged(&self, has_entries: bool) -> Logged {
        match (has_entries, self.expects_amendment) {
            (false, _) => Logged::Nothing,
            (true, true) => Logged::EntriesBeforeAmendment,
            (true, false) => Logged::Entries,
        }
    }

    /// Where it is noted how far the call has come. What the service records for itself is not an effect of the call during
    /// which it happens.
    fn effect(&self) -> Effect {
        self.caller().map(|_| scope::effect()).unwrap_or_default()
    }

    /// Tells everybody how the write has ended.
    async fn ended(
        &mut self,
        effect: &Effect,
        committed: Result<(), CommitError>,
        record: Option<RecordRef>,
        logged: Logged,
    ) -> Result<(), Error> {
        let committed = match committed {
            Ok(()) => {
                effect.committed();
                for (counter, number) in std::mem::take(&mut self.took) {
                    let counter = (self.account.id, counter);
                    self.database.sequences.note(&counter, number);
                    self.database.numbers.note(&counter, number);
                }
                Ok(())
            }
            Err(CommitError::Refused(error)) => {
                effect.refused();
                return Err(error.into());
            }
            Err(CommitError::Unknown(error)) => {
                tracing::warn!(%error, "connection lost during COMMIT; the transaction may be committed");
                Err(Error::InDoubt(record))
            }
        };
        // The next may take its number now.
        self.turns.clear();
        // A commit in doubt may have created work too. A crash before this line is covered by the workers' sweep.
        for account in std::iter::once(self.account.id).chain(self.filed_under) {
            self.database.committed(account, logged).await;
        }
        committed
    }
}

impl Tx<'_> {
    /// Commits the operation together with its log entries, totals and response. Rolls back if the operation has
    /// failed or the request has faults. Cancellation before this closes the connection.
    pub(super) async fn end(mut self, outcome: Result<Kept, Error>) -> Result<(), Error> {
        let finished = async {
            let kept = outcome?;
            self.valid()?;
            self.plan.check_precondition(&mut self.connection).await?;
            let entries = finish(&mut self, kept.response.as_deref()).await?;
            Ok((kept.record, self.logged(!entries.is_empty())))
        };
        match finished.await {
            Ok((record, logged)) => self.commit(record, logged).await,
            Err(error) => {
                self.connection.roll_back();
                Err(error)
            }
        }
    }

    async fn commit(mut self, record: Option<RecordRef>, logged: Logged) -> Result<(), Error> {
        let effect = self.effect();
        // Set before COMMIT is sent: if the call is cancelled before the answer, the outcome is unknown.
        effect.commits(record.clone());
        let committed = self.connection.commit().await;
        self.plan.ended(&effect, committed, record, logged).await
    }
}

/// Writes log entries, totals and response in one statement. Returns the ids of the log entries.
pub(super) async fn finish(tx: &mut Tx<'_>, response: Option<&[u8]>) -> Result<Vec<Uuid>, Error> {
    let Tx { plan, connection } = tx;
    let (changes, events) = (std::mem::take(&mut plan.changes), std::mem::take(&mut plan.events));
    let (account, method) = (plan.account(), plan.origin.method());
    if changes.is_empty() && changes.nothing.is_none() {
        check::refuse_unaudited(connection, plan.counts.as_ref(), &method).await?;
    }
    let owner = changes.account().unwrap_or(account);
    // A call with a key carries its own depth. A call by link may come from a program that reacts to an event about the
    // record, so there the depth of the record counts too.
    let depths = caused::depths(connection, account, &events, plan.depth, !plan.is_by_key()).await?;
    caused::remember(connection, owner, &changes.record_ids(), plan.depth).await?;
    let is_amendment = matches!(plan.origin, Origin::Amendment { .. });
    let stored = if is_amendment { Response::Amended } else { Response::First };
    let events = events.into_iter().zip(depths).collect();
    let mut last = LastStatement::new(plan, changes, events, response.map(|_| stored))?;
    if !last.is_nothing() {
        let finished = last.statement(plan, response).execute(&mut **connection).await;
        let finished = finished.map_err(|error| last.failed(plan, error))?;
        if last.asks_for_key() && finished.rows_affected() == 0 {
            // The key was used: the caller finds the response to it.
            return Err(Error::Raced);
        }
    }
    Ok(last.into_ids())
}
