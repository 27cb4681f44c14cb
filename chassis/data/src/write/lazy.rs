//! A write that opens its transaction only if it needs one.
//!
//! An operation that writes one row leaves that to the last statement. If nothing else needs a transaction, that statement
//! commits by itself, which saves three round trips, and locks are held only while it runs. It writes everything, or fails:
//! if the key was used, a unique index refuses the row, the record has another version than the operation has read, or
//! the number is not the next one. Then the operation runs again in an open transaction, with locks, which finds out what is
//! the matter; only for a number that must have no gaps it stands in line again. Who gives up while the statement runs does not know whether it has committed, and says so.

use std::ops::{Deref, DerefMut};

use chassis_base::Error;
use chassis_rpc::scope;
use futures::future::BoxFuture;
use sqlx::PgConnection;

use super::numbers::{Number, NumberRequest};
use super::plan::Plan;
use super::sequence::Place;
use super::tx::Tx;
use crate::log::check;
use crate::origin::Origin;
use crate::pool::{Purpose, Transaction};

/// A write of one account, whose transaction may not be open.
pub struct LazyTx<'a> {
    pub(super) tx: Tx<'a>,
    pub(super) number_request: Option<NumberRequest<'a>>,
    /// See [`LazyTx::next_in_sequence`].
    pub(super) place: Option<Place<'a>>,
}

impl<'a> LazyTx<'a> {
    pub(super) fn new(plan: Plan<'a>) -> Self {
        Self { tx: Tx { plan, connection: Transaction::NOT_BEGUN }, number_request: None, place: None }
    }

    /// The transaction, which begins if it has not begun yet: for an operation that turns out to need one.
    pub fn open(&mut self) -> BoxFuture<'_, Result<&mut Tx<'a>, Error>> {
        Box::pin(async {
            let Tx { plan, connection } = &mut self.tx;
            if !connection.is_begun() {
                *connection = plan.database.pool.begin(plan.purpose()).await?;
                plan.counts = check::counts(connection).await?;
                // Proves that background work still has its lease, so that no other process does the same.
                if let Origin::Work { lease } = plan.origin {
                    lease.hold(connection, plan.account.id).await?;
                }
                plan.check_precondition(connection).await?;
            }
            Ok(&mut self.tx)
        })
    }

    /// Opens the transaction, unless the attempt may do without. After most failures it may not: a transaction finds out what
    /// is the matter.
    pub(super) async fn begin(&mut self, may_do_without: bool) -> Result<(), Error> {
        if !may_do_without || !self.may_be_single() {
            self.open().await?;
        }
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.tx.connection.is_begun()
    }

    /// Reads without a lock, before a transaction is open. A record that is then changed must be refused if it has changed
    /// in between: by its version ([`Plan::write_last`]), and by the log, which has each version of a record once.
    pub async fn read<T, E, F>(&self, query: F) -> Result<T, E>
    where
        E: From<Error>,
        F: AsyncFnOnce(&mut PgConnection) -> Result<T, E>,
    {
        self.tx.plan.database.read(query).await
    }

    /// Reads in the transaction if it is open, and else as [`read`](Self::read).
    pub async fn query<T, E, F>(&mut self, query: F) -> Result<T, E>
    where
        E: From<Error>,
        F: AsyncFnOnce(&mut PgConnection) -> Result<T, E>,
    {
        match self.opened() {
            Some(connection) => query(connection).await,
            None => self.read(query).await,
        }
    }

    /// The transaction, if it is open.
    pub fn transaction(&mut self) -> Option<&mut Tx<'a>> {
        self.is_open().then_some(&mut self.tx)
    }

    /// The connection, if the transaction is open: for reads with a lock, and for the reason why a row may be refused.
    pub fn opened(&mut self) -> Option<&mut PgConnection> {
        self.is_open().then(|| self.tx.db())
    }

    /// The next number of a counter that may have gaps.
    ///
    /// While several calls want one, one statement takes the numbers of all that wait, before they write. A call that is
    /// alone takes it together with what it writes, which leaves no gap if it fails.
    pub async fn number(&mut self, counter: &str) -> Result<i64, Error> {
        let plan = &self.tx.plan;
        let mut number_request = NumberRequest::new(plan.database, plan.account.id, counter);
        let number = if self.is_open() {
            let number = self.tx.next_number(counter).await?;
            number_request.took(number);
            number
        } else {
            match number_request.number().await? {
                Number::Taken(number) => number,
                Number::Expected(number) => {
                    self.tx.plan.expected = Some((counter.to_owned(), number));
                    number
                }
            }
        };
        self.number_request = Some(number_request);
        Ok(number)
    }

    /// The number that the write takes from a counter that must have no gaps, together with what it writes. Only for a write
    /// whose transaction is not open; a transaction locks the counter ([`Tx::next_number`]) and says what it
    /// took ([`Tx::took_number`]). Take the number as late as possible: the next call in line waits for this one.
    pub async fn next_in_sequence(&mut self, counter: &str) -> Result<i64, Error> {
        let plan = &mut self.tx.plan;
        let place = Place::join(plan.database, plan.account.id, counter).await?;
        let number = place.number();
        plan.expected = Some((counter.to_owned(), number));
        self.place = Some(place);
        Ok(number)
    }
}

impl Plan<'_> {
    /// Whether the last statement may be the only one.
    pub(super) fn may_be_single(&self) -> bool {
        // Automation stores its depth, and a public call asks for that of its record.
        let needs_no_depth = self.is_by_key() && self.depth == 0;
        needs_no_depth && self.precondition().is_none() && !scope::is_dry_run()
    }

    /// Whether a call with a key started this, and not one with a link, or the service itself.
    pub(super) fn is_by_key(&self) -> bool {
        self.caller().is_some_and(|caller| !caller.identity.is_public())
    }

    /// What a connection for this write is for.
    pub(super) fn purpose(&self) -> Purpose {
        let in_background = scope::current_task().is_some_and(|task| task.background);
        let background = matches!(self.origin, Origin::Work { .. }) || in_background;
        Purpose { account: Some(self.account.id), background, writes: true }
    }
}

impl<'a> Deref for LazyTx<'a> {
    type Target = Plan<'a>;

    fn deref(&self) -> &Plan<'a> {
        &self.tx.plan
    }
}

impl<'a> DerefMut for LazyTx<'a> {
    fn deref_mut(&mut self) -> &mut Plan<'a> {
        &mut self.tx.plan
    }
}
