//! An open write transaction, as operations use it.

use std::fmt::Display;

use chassis_base::{Account, AccountId, Clock, Error};
use chassis_rpc::Context;
use prost::{Message, Name};
use proto::Faults;
use sqlx::PgConnection;
use uuid::Uuid;

use super::collision::Collision;
use super::turn::{MAX_WAIT, Turn};
use crate::db::Db;
use crate::log::changes::Changes;
use crate::log::check::Counts;
use crate::log::event::{Emitted, Event};
use crate::log::image::Image;
use crate::origin::Origin;
use crate::pool::Transaction;
use crate::totals::Totals;
use crate::{caused, numbering};

/// An open write transaction of one account.
pub struct Tx<'a> {
    pub(super) connection: Transaction,
    pub(super) account: &'a Account,
    pub(super) origin: Origin<'a>,
    pub(super) database: &'a Db,
    pub(super) clock: &'a Clock,
    /// The faults of the request; a transaction with faults is never committed.
    pub faults: Faults,
    pub(super) now: chrono::DateTime<chrono::Utc>,
    pub(super) events: Vec<Emitted>,
    /// See [`caused`].
    pub(super) depth: u32,
    pub(super) totals: Totals,
    pub(super) changes: Changes,
    /// See [`Tx::file_under`].
    pub(super) filed_under: Option<AccountId>,
    pub(super) counts: Option<Counts>,
    pub(super) collision: Collision,
    /// See [`Tx::wait_for_counter`].
    pub(super) turns: Vec<Turn>,
    /// See [`Tx::expect_amendment`].
    pub(super) expects_amendment: bool,
}

impl<'a> Tx<'a> {
    /// The connection, for the queries of `store`.
    pub fn db(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// The call that the transaction serves; `None` in background work.
    pub fn caller(&self) -> Option<&'a Context> {
        self.origin.call()
    }

    pub fn account(&self) -> AccountId {
        self.account.id
    }

    /// The account's time zone, country and currency.
    pub fn settings(&self) -> &'a Account {
        self.account
    }

    /// The time of this transaction, which is the same for all of its rows and events.
    pub fn now(&self) -> chrono::DateTime<chrono::Utc> {
        self.now
    }

    /// The day of this transaction in the account's time zone.
    pub fn today(&self) -> chrono::NaiveDate {
        self.now.with_timezone(&self.account.timezone).date_naive()
    }

    /// A new id, which contains the current time.
    pub fn id(&self) -> Uuid {
        self.clock.id()
    }

    /// Fails if the request has faults. Call this when all of them have been collected.
    pub fn valid(&mut self) -> Result<(), Error> {
        if self.faults.is_empty() { Ok(()) } else { Err(std::mem::take(&mut self.faults).into()) }
    }

    /// Records an event; it is delivered to its listeners after the commit.
    pub fn emit(&mut self, event: &Event) {
        self.emit_from(event, event.entity_id);
    }

    /// Like [`emit`](Self::emit), for an event that another record (`origin`) caused, for example an invoice an event
    /// about its client.
    pub fn emit_from(&mut self, event: &Event, origin: Uuid) {
        self.events.push(Emitted::new(event, origin, self.events.len()));
    }

    /// Adds an entry to the total of a list (`1`) or removes it (`-1`), on the day of its creation.
    pub fn count(&mut self, list: &str, created: chrono::DateTime<chrono::Utc>, by: i64) {
        self.totals.add(list, created.date_naive(), by);
    }

    /// Writes to the log that this record was created or changed. `message` is the record after the change; if it
    /// changes again, call this again. If an rpc reports no change, the records in its response count as changed.
    pub fn changed<M: Message + Name>(&mut self, kind: &str, id: impl Display, message: &M) {
        self.changes.changed(kind, &id, message);
    }

    /// Writes to the log that this record was removed.
    pub fn removed(&mut self, kind: &str, id: impl Display) {
        self.changes.removed(kind, &id);
    }

    /// Writes to the log that this record is shown like this.
    pub(crate) fn log_image(&mut self, kind: &str, id: String, image: Image) {
        self.changes.put(kind, id, Some(image));
    }

    /// The version of a new record with this id: one more than the last in the log, if there was such a record before. For
    /// records whose ids can come back, such as names, because the log has each version of an id once.
    pub async fn first_version(&mut self, kind: &str, id: impl Display) -> Result<i64, Error> {
        let sql = "select greatest(max(version), 0) + 1 from log \
                   where account_id = $1 and record_id = $2 and kind = $3 and change is not null";
        let query = sqlx::query_scalar(sql).bind(self.account.id).bind(id.to_string()).bind(kind);
        Ok(query.fetch_one(&mut *self.connection).await?)
    }

    /// Declares that [`Db::amend`](crate::Db::amend) follows within a moment, so that the entries of both get their positions
    /// and are delivered together.
    pub fn expect_amendment(&mut self) {
        self.expects_amendment = true;
    }

    /// Declares why this transaction needs no entry in the log. Changes that it reports are still written.
    pub fn unaudited(&mut self, why: &'static str) {
        self.changes.nothing = Some(why);
    }

    /// Call this before changing records of another account than the call's: the entries are filed under that account.
    pub fn file_under(&mut self, account: AccountId) {
        self.changes.file_under(account);
        self.filed_under = Some(account);
    }

    /// Waits until no other transaction of this process holds the counter. Call this right before the statement that takes
    /// a number; it holds until the transaction has ended.
    pub async fn wait_for_counter(&mut self, counter: &str) {
        let counter = (self.account.id, counter.to_owned());
        if !self.turns.iter().any(|turn| turn.is_at(&counter)) {
            self.turns.extend(self.database.turns.wait(counter, MAX_WAIT).await);
        }
    }

    /// The number that [`Db::write_numbered`](crate::Db::write_numbered) has taken for this transaction. If there is none, the
    /// operation takes one.
    pub fn number_ahead(&self) -> Option<i64> {
        match self.origin {
            Origin::Call { number, .. } => number,
            _ => None,
        }
    }

    /// The next number of a counter of the account; see [`numbering`].
    pub async fn next_number(&mut self, counter: &str) -> Result<i64, Error> {
        self.wait_for_counter(counter).await;
        numbering::next(&mut self.connection, self.account.id, counter).await
    }

    /// The next version of an entity whose version the service does not store, for example a record of another service.
    pub async fn next_version(&mut self, entity_type: &str, entity_id: Uuid) -> Result<i64, Error> {
        let counter = format!("event/{entity_type}/{entity_id}");
        numbering::next(&mut self.connection, self.account.id, &counter).await
    }

    /// How many events in a chain led to this transaction; see [`Identity::depth`](chassis_rpc::token::Identity).
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Sets the depth of this transaction in a chain of automation to at least `depth`.
    pub fn caused_at(&mut self, depth: u32) {
        self.depth = self.depth.max(depth);
    }

    /// Sets the depth of this transaction to at least the depth at which this record was created.
    pub async fn continues(&mut self, id: impl Display) -> Result<(), Error> {
        let id = id.to_string();
        let known = caused::find(&mut self.connection, self.account.id, std::slice::from_ref(&id)).await?;
        self.caused_at(known.get(&id).copied().unwrap_or_default());
        Ok(())
    }
}
