//! Where the pass through an account is.

use chassis_base::Error;
use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use crate::log::compact::first_id;
use crate::write::Tx;

/// A transaction of the release before may have made its entry in `audit` this long before it committed.
const LONGEST_WRITE: TimeDelta = TimeDelta::minutes(5);
/// How long a pass holds, while programs of the release before go on writing.
const REPEAT_INTERVAL: TimeDelta = TimeDelta::hours(1);

#[derive(Debug, chassis_derive::FromRow)]
pub(super) struct Place {
    /// The kind of records that is compared; [`REMOVED`](super::pass::REMOVED) at the end, and `None` when no pass is under
    /// way.
    pub kind: Option<String>,
    /// The last record that was compared.
    pub after: String,
    began_at: DateTime<Utc>,
    pub logged: i64,
    #[sqlx(skip)]
    seen: Option<Uuid>,
}

impl Place {
    /// Locks the place of the account, so that each page is compared once. `None` if it was never compared.
    pub(super) async fn lock(tx: &mut Tx<'_>) -> Result<Option<Self>, Error> {
        let account = tx.account();
        let sql = "select kind, after, began_at, logged from snapshot where account_id = $1 for update";
        Ok(sqlx::query_as(sql).bind(account).fetch_optional(tx.db()).await?)
    }

    /// The beginning of a pass.
    pub(super) fn begin(tx: &Tx<'_>, kind: &str) -> Self {
        let now = tx.now();
        let seen = Some(first_id(now - LONGEST_WRITE));
        Self { kind: Some(kind.to_owned()), after: String::new(), began_at: now, logged: 0, seen }
    }

    /// Stores the place. Two transactions that begin the first pass at once store it one after the other.
    pub(super) async fn store(&self, tx: &mut Tx<'_>) -> Result<(), Error> {
        let (account, now) = (tx.account(), tx.now());
        let ended_at = self.kind.is_none().then_some(now);
        sqlx::query(
            "insert into snapshot (account_id, kind, after, seen, next_at, began_at, ended_at, logged)
             values ($1, $2, $3, coalesce($4::uuid, '00000000-0000-0000-0000-000000000000'), $5, $6, $7, $8)
             on conflict (account_id) do update set kind = excluded.kind, after = excluded.after,
                seen = coalesce($4::uuid, snapshot.seen), next_at = excluded.next_at, began_at = excluded.began_at,
                ended_at = coalesce(excluded.ended_at, snapshot.ended_at), logged = excluded.logged",
        )
        .bind(account)
        .bind(&self.kind)
        .bind(&self.after)
        .bind(self.seen)
        .bind(self.began_at + REPEAT_INTERVAL)
        .bind(self.began_at)
        .bind(ended_at)
        .bind(self.logged)
        .execute(tx.db())
        .await?;
        Ok(())
    }
}

/// Notes that an account that is about to be stored needs no pass. It has no records, unless a program of the release
/// before has stored some for an account that it did not know.
pub async fn skip_new_account(tx: &mut Tx<'_>) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let sql = "select exists (select from account where account_id = $1)
            or exists (select from audit where account_id = $1) or exists (select from snapshot where account_id = $1)";
    let is_known: bool = sqlx::query_scalar(sql).bind(account).fetch_one(tx.db()).await?;
    if is_known {
        return Ok(());
    }
    let seen = Some(first_id(now - LONGEST_WRITE));
    Place { kind: None, after: String::new(), began_at: now, logged: 0, seen }.store(tx).await
}
