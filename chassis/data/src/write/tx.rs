//! An open write transaction, as operations use it.

use std::fmt::Display;
use std::ops::{Deref, DerefMut};

use chassis_base::Error;
use sqlx::PgConnection;
use uuid::Uuid;

use super::plan::Plan;
use super::turn::MAX_WAIT;
use crate::log::forget;
use crate::pool::Transaction;
use crate::{caused, numbering};

/// An open write transaction of one account.
pub struct Tx<'a> {
    pub(super) plan: Plan<'a>,
    pub(super) connection: Transaction,
}

impl<'a> Deref for Tx<'a> {
    type Target = Plan<'a>;

    fn deref(&self) -> &Plan<'a> {
        &self.plan
    }
}

impl<'a> DerefMut for Tx<'a> {
    fn deref_mut(&mut self) -> &mut Plan<'a> {
        &mut self.plan
    }
}

impl Tx<'_> {
    /// The connection, for the queries of `store`.
    pub fn db(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// The version of a new record with this id: one more than the last in the log, if there was such a record before. For
    /// records whose ids can come back, such as names, because the log has each version of an id once.
    pub async fn first_version(&mut self, kind: &str, id: impl Display) -> Result<i64, Error> {
        let sql = "select greatest(max(version), 0) + 1 from log \
                   where account_id = $1 and record_id = $2 and kind = $3 and change is not null";
        let query = sqlx::query_scalar(sql).bind(self.account.id).bind(id.to_string()).bind(kind);
        Ok(query.fetch_one(&mut *self.connection).await?)
    }

    /// Forgets what the log has of these records so far; nobody is shown it any more. For records whose new state this
    /// transaction logs. Their rows must be locked.
    pub async fn forget_history(&mut self, kind: &str, ids: &[String]) -> Result<(), Error> {
        let (account, now) = (self.plan.account.id, self.plan.now);
        forget::forget_history(&mut self.connection, account, kind, ids, now).await
    }

    /// Forgets earlier states of all records that name this one, which can be another service's, and the data of events that do.
    pub async fn forget_mentions(&mut self, id: impl Display) -> Result<(), Error> {
        let (account, now) = (self.plan.account.id, self.plan.now);
        forget::forget_mentions(&mut self.connection, account, &id.to_string(), now).await
    }

    /// Waits until no other transaction of this process holds the counter. Call this right before the statement that takes
    /// a number; it holds until the transaction has ended.
    pub async fn wait_for_counter(&mut self, counter: &str) {
        let counter = (self.account.id, counter.to_owned());
        if !self.turns.iter().any(|turn| turn.is_at(&counter)) {
            let turn = self.database.turns.wait(counter, MAX_WAIT).await;
            self.turns.extend(turn);
        }
    }

    /// The next number of a counter of the account; see [`numbering`].
    pub async fn next_number(&mut self, counter: &str) -> Result<i64, Error> {
        self.wait_for_counter(counter).await;
        numbering::next(&mut self.connection, self.plan.account.id, counter).await
    }

    /// Declares that the transaction has taken a number of a counter that must have no gaps, and advanced the counter to it.
    /// Later writes without a transaction expect the number after it.
    pub fn took_number(&mut self, counter: &str, number: i64) {
        self.took.push((counter.to_owned(), number));
    }

    /// The next version of an entity whose version the service does not store, for example a record of another service.
    pub async fn next_version(&mut self, entity_type: &str, entity_id: Uuid) -> Result<i64, Error> {
        let counter = format!("event/{entity_type}/{entity_id}");
        numbering::next(&mut self.connection, self.plan.account.id, &counter).await
    }

    /// Sets the depth of this transaction to at least the depth at which this record was created.
    pub async fn continues(&mut self, id: impl Display) -> Result<(), Error> {
        let id = id.to_string();
        let known =
            caused::find(&mut self.connection, self.plan.account.id, std::slice::from_ref(&id)).await?;
        self.caused_at(known.get(&id).copied().unwrap_or_default());
        Ok(())
    }
}
