//! One job: a worker's turn at one account.

use std::sync::Arc;

use chassis_base::{Account, AccountId, Error};
use chassis_data::lease::Lease;
use chassis_data::{Db, Tx};
use chrono::{DateTime, TimeDelta, Utc};

use super::slot::Slot;

/// When the account's next job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When work is due again.
    WhenDue,
    /// Immediately: there is more work than one job should do.
    Now,
    /// After this time has passed, even if work is due before.
    After(TimeDelta),
}

/// A worker's turn at one account.
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

    /// For reads. Writes go through [`Job::write`], which checks the lease.
    pub fn db(&self) -> &Db {
        &self.db
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.db.clock().now()
    }

    /// Lets another account's job run meanwhile. For a job that waits for a slow external system. The account still has
    /// no other job of this worker.
    pub fn release_slot(&self) {
        self.slot.leave();
    }

    /// Waits for a free slot and takes it again.
    pub async fn reacquire_slot(&self) {
        self.slot.take().await;
    }

    /// Whether a long-running job must end soon, because the process stops or another process waits for its share of
    /// the partitions.
    pub fn should_stop(&self) -> bool {
        self.slot.should_stop()
    }

    /// A write transaction that fails with [`Error::LeaseLost`] once another process has taken over the partition. The
    /// data of `operation` is passed as `input`, because the future of a closure that borrows is not `Send`.
    pub async fn write<R, T, E, F>(&self, input: &R, operation: F) -> Result<T, Error>
    where
        E: Into<Error>,
        F: AsyncFn(&mut Tx<'_>, &R) -> Result<T, E>,
    {
        self.db.fenced(&self.lease, &self.account, input, operation).await
    }
}
