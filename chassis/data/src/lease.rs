//! The fence of background work: a write transaction first proves that its lease is still held.

use std::sync::Arc;

use chassis_base::{AccountId, Error};
use sqlx::PgConnection;
use uuid::Uuid;

/// The lease of this process on one partition, as a write transaction presents it.
#[derive(Clone, Debug)]
pub struct Lease {
    worker: Arc<str>,
    partition: u16,
    owner: Uuid,
    fence: i64,
}

impl Lease {
    /// Only the code that has acquired the lease may call this.
    pub fn new(worker: Arc<str>, partition: u16, owner: Uuid, fence: i64) -> Self {
        Self { worker, partition, owner, fence }
    }

    /// The background work of the lease.
    pub fn worker(&self) -> &str {
        &self.worker
    }

    /// Checks that this process still holds the lease, and keeps others from taking it until the transaction ends.
    pub async fn hold(&self, connection: &mut PgConnection, account: AccountId) -> Result<(), Error> {
        if account.partition() != self.partition {
            return Err(Error::Internal("a lease was used for an account of another partition".into()));
        }
        // Taking a lease over updates its row. The share lock delays that until this transaction has ended, and does
        // not block other transactions under the same lease.
        let held: Option<i32> = sqlx::query_scalar(
            "select 1 from lease where worker = $1 and partition = $2 and owner = $3 and fence = $4 for share",
        )
        .bind(&*self.worker)
        .bind(column(self.partition))
        .bind(self.owner)
        .bind(self.fence)
        .fetch_optional(connection)
        .await?;
        held.map(|_| ()).ok_or(Error::LeaseLost)
    }
}

/// A partition as the type of its column.
pub fn column(partition: u16) -> i16 {
    i16::try_from(partition).unwrap_or(i16::MAX)
}
