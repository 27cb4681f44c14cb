//! One account's turn.

use std::sync::Arc;

use chassis_base::{Account, AccountId, Error};
use chassis_data::lease::Lease;
use chassis_data::{Db, Tx};
use chrono::{DateTime, TimeDelta, Utc};

use super::slot::Slot;

/// What a job says about the account's next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When there is work due again.
    WhenDue,
    /// At once: there was more than one job should do.
    Now,
    /// Not before this time has passed.
    After(TimeDelta),
}

/// One account's turn.
#[derive(Clone)]
pub struct Job {
    pub(super) db: Db,
    pub(super) account: Arc<Account>,
    pub(super) lease: Lease,
    pub(super) slot: Arc<Slot>,
}

impl Job {
    pub fn account(&self) -> &Account {
        &self.account
    }

    pub fn account_id(&self) -> AccountId {
        self.account.id
    }

    /// For reading. Writing goes through [`Job::write`].
    pub fn db(&self) -> &Db {
        &self.db
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.db.clock().now()
    }

    /// Lets another account's job run in its place: for a job that only waits for somebody outside, who may take long.
    /// It is still the account's only job.
    pub fn release_slot(&self) {
        self.slot.leave();
    }

    /// Takes its place again, as soon as there is one.
    pub async fn reacquire_slot(&self) {
        self.slot.take().await;
    }

    /// Whether a job that could go on for ever has to come to its end: the process stops, or another one waits for its
    /// share of the accounts.
    pub fn should_stop(&self) -> bool {
        self.slot.should_stop()
    }

    /// A write transaction that fails with [`Error::LeaseLost`] once another process has taken the work over. What
    /// `operation` needs comes as `input`: a closure that borrows would not be `Send`.
    pub async fn write<R, T, E, F>(&self, input: &R, operation: F) -> Result<T, Error>
    where
        E: Into<Error>,
        F: AsyncFn(&mut Tx<'_>, &R) -> Result<T, E>,
    {
        self.db.fenced(&self.lease, &self.account, input, operation).await
    }
}
