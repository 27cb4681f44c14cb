//! Checks the chain of hashes.

use chassis_base::{AccountId, Error};
use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::chain::Link;
use super::read;

/// How many entries one call checks.
const BATCH: i64 = 2000;

/// How far a chain is whole.
pub(super) struct Verified {
    pub position: i64,
    pub hash: Vec<u8>,
    pub more: bool,
    /// At which position the chain is broken, and how.
    pub fault: Option<(i64, &'static str)>,
}

#[derive(chassis_derive::FromRow)]
struct Row {
    position: i64,
    hash: Vec<u8>,
    #[sqlx(flatten)]
    entry: Entry,
}

/// The entry of a position; all are `None` if it is gone.
#[derive(chassis_derive::FromRow)]
struct Entry {
    kind: Option<String>,
    record_id: Option<String>,
    version: Option<i64>,
    at: Option<DateTime<Utc>>,
    actor: Option<String>,
    /// The hash of the state itself; `None` if it was forgotten.
    state_hash: Option<Vec<u8>>,
    image_hash: Option<Vec<u8>>,
}

/// Checks the entries after a position, whose hash is given.
pub(super) async fn check(
    connection: &mut PgConnection,
    account: AccountId,
    after: i64,
    hash: Vec<u8>,
) -> Result<Verified, Error> {
    let head = read::head(connection, account).await?;
    let rows: Vec<Row> = sqlx::query_as(
        "select feed.position, feed.hash, kind, record_id, version, at, actor, sha256(image) as state_hash, image_hash
         from feed left join log entry on entry.account_id = feed.account_id and entry.id = feed.id
         where feed.account_id = $1 and feed.position > $2 order by feed.position limit $3",
    )
    .bind(account)
    .bind(after)
    .bind(BATCH)
    .fetch_all(connection)
    .await?;
    let more = i64::try_from(rows.len()).is_ok_and(|count| count == BATCH);
    let mut verified = Verified { position: after, hash, more, fault: None };
    for row in rows {
        if let Some(fault) = verified.fault_of(&row) {
            verified.fault = Some((verified.position + 1, fault));
            return Ok(verified);
        }
        verified.position = row.position;
        verified.hash = row.hash;
    }
    // The end is compared only if nothing has been appended since it was read.
    let is_end = head.filter(|head| !verified.more && head.position >= verified.position);
    if is_end.is_some_and(|head| head.position > verified.position || head.hash != verified.hash) {
        verified.fault = Some((verified.position + 1, "the end of the log is not where it was noted"));
    }
    Ok(verified)
}

impl Verified {
    fn fault_of(&self, row: &Row) -> Option<&'static str> {
        if row.position != self.position + 1 {
            return Some("the position is missing");
        }
        let entry = &row.entry;
        let (Some(kind), Some(record_id), Some(version), Some(at), Some(actor)) =
            (&entry.kind, &entry.record_id, entry.version, entry.at, &entry.actor)
        else {
            return Some("the entry is missing");
        };
        let image_hash = entry.image_hash.as_deref();
        let link = Link { position: row.position, kind, record_id, version, at, actor, image_hash };
        if link.hash(&self.hash) != *row.hash {
            return Some("the hash does not cover the entry");
        }
        let is_other = entry.state_hash.is_some() && entry.state_hash.as_deref() != image_hash;
        is_other.then_some("the state of the record is not what its hash covers")
    }
}
