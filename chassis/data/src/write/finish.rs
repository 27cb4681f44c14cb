//! The end of a write transaction: log entries, totals and response, then the commit and the wake-up.

use chassis_base::Error;
use chassis_base::error::RecordRef;
use chassis_base::error::database::violated_constraint;
use chassis_rpc::scope;
use uuid::Uuid;

use super::statement::{self, Parts, Response};
use super::tx::Tx;
use crate::caused;
use crate::idempotency::{self, WINDOW};
use crate::log::check;
use crate::log::entries::Entries;
use crate::origin::Origin;
use crate::pool::CommitError;
use crate::rows::Rows;
use crate::wake::Logged;

/// The index that lets a record have each version once.
const VERSIONS: &str = "log_of_record";

/// What is stored about an operation besides its rows.
#[derive(Default)]
pub(super) struct Kept {
    /// The response that repeats of the call get.
    pub response: Option<Vec<u8>>,
    /// The record that the operation changed.
    pub record: Option<RecordRef>,
}

impl Tx<'_> {
    /// How a response of this transaction is stored.
    fn response(&self) -> Response {
        if matches!(self.origin, Origin::Amendment { .. }) { Response::Amended } else { Response::First }
    }

    /// Commits the operation together with its log entries, totals and response. Rolls back if the operation has
    /// failed or the request has faults. Cancellation before this closes the connection.
    pub(super) async fn end<T>(mut self, outcome: Result<T, Error>, kept: Kept) -> Result<T, Error> {
        let finished = async {
            let outcome = outcome?;
            self.valid()?;
            self.check_precondition().await?;
            let entries = finish(&mut self, kept.response.as_deref()).await?;
            let logged = match (entries.is_empty(), self.expects_amendment) {
                (true, _) => Logged::Nothing,
                (false, true) => Logged::EntriesBeforeAmendment,
                (false, false) => Logged::Entries,
            };
            Ok((outcome, logged))
        };
        match finished.await {
            Ok((outcome, logged)) => self.commit(kept.record, logged).await.map(|()| outcome),
            Err(error) => {
                self.connection.roll_back();
                Err(error)
            }
        }
    }

    async fn commit(self, record: Option<RecordRef>, logged: Logged) -> Result<(), Error> {
        // What the service records for itself is not an effect of the call during which it happens.
        let effect = self.caller().map(|_| scope::effect()).unwrap_or_default();
        // Set before COMMIT is sent: if the call is cancelled before the answer, the outcome is unknown.
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
                tracing::warn!(%error, "connection lost during COMMIT; the transaction may be committed");
                Err(Error::InDoubt(record))
            }
        };
        // The next may take its number now.
        drop(self.turns);
        // A commit in doubt may have created work too. A crash before this line is covered by the workers' sweep.
        for account in std::iter::once(self.account.id).chain(self.filed_under) {
            self.database.committed(account, logged).await;
        }
        committed
    }
}

/// Writes log entries, totals and response in one statement. Returns the ids of the log entries.
pub(super) async fn finish(tx: &mut Tx<'_>, response: Option<&[u8]>) -> Result<Vec<Uuid>, Error> {
    let changes = std::mem::take(&mut tx.changes);
    let (is_unaudited, owner) = (changes.nothing.is_some(), changes.account().unwrap_or(tx.account()));
    let method = tx.origin.method();
    if changes.is_empty() && !is_unaudited {
        check::refuse_unaudited(&mut tx.connection, tx.counts.as_ref(), &method).await?;
    }
    let account = tx.account();
    let events = std::mem::take(&mut tx.events);
    if owner != account && !events.is_empty() {
        return Err(Error::Internal(format!("{method} told an event while it changed another account")));
    }
    // A call with a key carries its own depth. A call by link may come from a program that reacts to an event about the
    // record, so there the depth of the record counts too.
    let by_key = tx.caller().is_some_and(|caller| !caller.identity.is_public());
    let depths = caused::depths(&mut tx.connection, account, &events, tx.depth, !by_key).await?;
    caused::remember(&mut tx.connection, owner, &changes.record_ids(), tx.depth).await?;
    let depth = i32::try_from(tx.depth).unwrap_or(i32::MAX);
    let entries = Entries::new(changes, events.into_iter().zip(depths).collect(), depth, tx.clock);
    let totals = tx.totals.rows();
    let parts = Parts {
        entries: Rows::of(entries.ids.len()),
        totals: Rows::of(totals.0.len()),
        response: response.map(|_| tx.response()),
    };
    if parts.is_nothing() {
        return Ok(Vec::new());
    }
    let sql = parts.sql();
    let mut statement = statement::prepare(&sql);
    let (actor, request_id) = (tx.origin.actor(), tx.origin.request_id());
    if parts.entries != Rows::None {
        // Entries of no account, such as a team's credentials, have no reader.
        let is_numbered = !owner.uuid().is_nil();
        statement =
            statement.bind(owner).bind(tx.now).bind(actor).bind(request_id).bind(&method).bind(is_numbered);
        statement = statement::bind_entries(statement, &entries, parts.entries);
    }
    if parts.totals != Rows::None {
        statement = statement::bind_totals(statement.bind(account), &totals, parts.totals);
    }
    if let Some(stored) = parts.response {
        let key = tx.caller().and_then(|context| context.idempotency_key.as_deref());
        let route = tx.caller().map(|context| context.rpc);
        statement = statement.bind(account).bind(response).bind(route).bind(key);
        if stored == Response::First {
            statement = statement.bind(tx.origin.fingerprint()).bind(tx.now).bind(tx.now - WINDOW);
        }
    }
    let finished = statement.execute(&mut *tx.connection).await.map_err(|error| {
        if violated_constraint(&error) == Some(VERSIONS) {
            let records = entries.kinds.iter().zip(&entries.record_ids);
            tx.collision.set(records.map(|(kind, id)| RecordRef { kind: kind.clone(), id: id.clone() }));
            return Error::Raced;
        }
        let error = Error::Database(error);
        let awaits_key = parts.response == Some(Response::First) && error.is_lock_timeout();
        if awaits_key { idempotency::still_running() } else { error }
    })?;
    if parts.response == Some(Response::First) && finished.rows_affected() == 0 {
        // The key was used: the caller finds the response to it.
        return Err(Error::Raced);
    }
    Ok(entries.ids)
}
