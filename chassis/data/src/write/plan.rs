//! A write before it reaches the database: what it is about, and what it will record with its last statement.

use std::fmt::Display;

use chassis_base::{Account, AccountId, Clock, Error};
use chassis_rpc::Context;
use prost::{Message, Name};
use proto::Faults;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use uuid::Uuid;

use super::collision::Collision;
use super::deferred::Deferred;
use super::turn::Turn;
use crate::db::Db;
use crate::listing::Listing;
use crate::log::changes::Changes;
use crate::log::check::Counts;
use crate::log::event::{Emitted, Event};
use crate::log::image::Image;
use crate::origin::Origin;
use crate::totals::Totals;

/// What a write of one account is about, and what it will record.
pub struct Plan<'a> {
    pub(super) account: &'a Account,
    pub(super) origin: Origin<'a>,
    pub(super) database: &'a Db,
    pub(super) clock: &'a Clock,
    /// The faults of the request; a transaction with faults is never committed.
    pub faults: Faults,
    pub(super) now: chrono::DateTime<chrono::Utc>,
    pub(super) events: Vec<Emitted>,
    /// See [`caused`](crate::caused).
    pub(super) depth: u32,
    pub(super) totals: Totals,
    pub(super) changes: Changes,
    /// See [`Plan::file_under`].
    pub(super) filed_under: Option<AccountId>,
    pub(super) counts: Option<Counts>,
    pub(super) collision: Collision,
    /// See [`Tx::wait_for_counter`](crate::Tx::wait_for_counter).
    pub(super) turns: Vec<Turn>,
    /// See [`Plan::expect_amendment`].
    pub(super) expects_amendment: bool,
    /// See [`Plan::write_last`].
    pub(super) deferred: Option<Deferred>,
    /// A number that the last statement takes from its counter, or fails.
    pub(super) expected: Option<(String, i64)>,
    /// See [`Tx::took_number`](crate::Tx::took_number).
    pub(super) took: Vec<(String, i64)>,
    /// See [`Plan::refers_to`].
    pub(super) referred: Vec<Uuid>,
}

impl<'a> Plan<'a> {
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

    /// Counts a new record in the lists that show it.
    pub fn list(&mut self, after: &Listing) {
        self.totals.add(after, 1, self.now);
    }

    /// Counts a record that other lists show than before.
    pub fn relist(&mut self, before: &Listing, after: &Listing) {
        self.unlist(before);
        self.list(after);
    }

    /// Counts a removed record no longer in the lists that showed it.
    pub fn unlist(&mut self, before: &Listing) {
        self.totals.add(before, -1, self.now);
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

    /// Declares that the write refers to this record of another service. It is refused if that record is being removed; see
    /// [`withdrawal`](crate::withdrawal). No round trip.
    pub fn refers_to(&mut self, record: impl Into<Option<Uuid>>) {
        self.referred.extend(record.into());
    }

    /// How many events in a chain led to this transaction; see [`Identity::depth`](chassis_rpc::token::Identity).
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Sets the depth of this transaction in a chain of automation to at least `depth`.
    pub fn caused_at(&mut self, depth: u32) {
        self.depth = self.depth.max(depth);
    }

    /// Leaves a statement to the last one of the transaction, which saves a round trip. It must not be one whose result is
    /// needed, and statements of the operation do not see what it writes. A transaction has one such statement; one that
    /// writes to several tables has the form `with a as (…), b as (…) select 1`. An update must find its row; as a part it is
    /// the first one, `deferred as (update … returning 1)`.
    pub fn write_last(&mut self, statement: Query<'_, Postgres, PgArguments>) -> Result<(), Error> {
        if self.deferred.is_some() {
            return Err(Error::Internal("a transaction left two statements to its last one".into()));
        }
        self.deferred = Some(Deferred::new(statement)?);
        Ok(())
    }
}
