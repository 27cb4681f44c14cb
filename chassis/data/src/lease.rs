//! The proof that background work still has its lease: a fence that a write transaction holds from its beginning.

use std::sync::Arc;

use chassis_base::{AccountId, Error};
use sqlx::PgConnection;
use uuid::Uuid;

/// A partition that this process works on, as a write can prove it.
#[derive(Clone, Debug)]
pub struct Lease {
    worker: Arc<str>,
    partition: u16,
    owner: Uuid,
    fence: i64,
}

impl Lease {
    /// To be made only by who has taken the lease.
    pub fn new(worker: Arc<str>, partition: u16, owner: Uuid, fence: i64) -> Self {
        Self { worker, partition, owner, fence }
    }

    /// The background work that it is for.
    pub fn worker(&self) -> &str {
        &self.worker
    }

    /// Makes sure that the lease is still ours, and that nobody takes it before the transaction has ended.
    pub async fn hold(&self, connection: &mut PgConnection, account: AccountId) -> Result<(), Error> {
        if account.partition() != self.partition {
            return Err(Error::Internal("a lease was used for an account of another partition".into()));
        }
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

/// A partition as its column has it.
pub fn column(partition: u16) -> i16 {
    i16::try_from(partition).unwrap_or(i16::MAX)
}
