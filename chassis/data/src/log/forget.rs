//! Forgets what a record was before, at once and not only when it is old: for records that no longer tell who somebody is.
//!
//! The role that serves cannot change the log. So it notes which states are to be forgotten, and readers leave them out from
//! then on; [`mod@compact`](super::compact) removes the bytes. Hashes stay, so the chain stays whole.

use chassis_base::{AccountId, Error};
use chrono::{DateTime, Utc};
use sqlx::PgConnection;

/// Forgets what the log says about a record of any service: earlier states of records that name it, and the data of events.
/// They are shown until the bytes are removed, because only reading all of them finds them.
pub(crate) async fn forget_mentions(
    connection: &mut PgConnection,
    account: AccountId,
    record_id: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql =
        "insert into forgotten_history (account_id, record_id, kind, version, at) values ($1, $2, '', 0, $3)
        on conflict (account_id, record_id, kind) do update set at = excluded.at, removed_at = null";
    sqlx::query(sql).bind(account).bind(record_id).bind(now).execute(connection).await?;
    Ok(())
}

/// Forgets the states that the log has of these records now.
pub(crate) async fn forget_history(
    connection: &mut PgConnection,
    account: AccountId,
    kind: &str,
    record_ids: &[String],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = "insert into forgotten_history (account_id, record_id, kind, version, at)
        select $1, record_id, $3, max(version), $4 from log
        where account_id = $1 and record_id = any($2) and kind = $3 and change is not null
        group by record_id order by record_id
        on conflict (account_id, record_id, kind) do update
            set version = excluded.version, at = excluded.at, removed_at = null";
    sqlx::query(sql).bind(account).bind(record_ids).bind(kind).bind(now).execute(connection).await?;
    Ok(())
}
