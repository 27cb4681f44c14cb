//! Reads the log in the order of its positions.

use chassis_base::{AccountId, Error};
use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use proto::log::Change;
use sqlx::{FromRow, PgConnection};

use crate::long_pages::PageBytes;

/// How many positions one query looks through: a reader of few kinds skips many entries.
const WINDOW: i64 = 5000;
/// The most bytes of a page, unless its first entry is longer. Below what a gRPC client takes by default, 4 MiB.
const MAX_BYTES: usize = 2 << 20;

/// The changes after a position.
pub(super) struct Page {
    pub entries: Vec<Entry>,
    /// The position up to which these are all.
    pub position: i64,
    pub more: bool,
}

#[derive(sqlx::FromRow)]
pub(super) struct Entry {
    pub position: i64,
    pub at: DateTime<Utc>,
    pub actor: String,
    pub request_id: String,
    pub kind: String,
    pub record_id: String,
    pub version: i64,
    change: String,
    pub message: String,
    pub image: Option<Vec<u8>>,
}

/// The end of the log.
#[derive(sqlx::FromRow)]
pub(super) struct Head {
    pub position: i64,
    pub hash: Vec<u8>,
    pub at: DateTime<Utc>,
}

impl Entry {
    pub(super) fn change(&self) -> Result<Change, Error> {
        match self.change.as_str() {
            "created" => Ok(Change::Created),
            "updated" => Ok(Change::Updated),
            "deleted" => Ok(Change::Deleted),
            other => Err(Error::Internal(format!("log.change has the unknown value {other:?}"))),
        }
    }
}

/// `None` if the account has no entries.
pub(super) async fn head(connection: &mut PgConnection, account: AccountId) -> Result<Option<Head>, Error> {
    let sql = "select position, hash, at from feed_head where account_id = $1";
    Ok(sqlx::query_as(sql).bind(account).fetch_optional(connection).await?)
}

/// The changes of these kinds, or of all if there are none, after a position. A state that was forgotten is left out,
/// because a later entry has the record.
pub(super) async fn page(
    connection: &mut PgConnection,
    account: AccountId,
    after: i64,
    kinds: &[String],
    limit: i64,
) -> Result<Page, Error> {
    // The end is read first: what is numbered meanwhile is left for the next page.
    let end = head(connection, account).await?.map_or(0, |head| head.position);
    let window = end.min(after.saturating_add(WINDOW));
    let mut rows = sqlx::query(
        "select feed.position, at, actor, request_id, kind, record_id, version, change, message, image
         from feed join log entry on entry.account_id = feed.account_id and entry.id = feed.id
         where feed.account_id = $1 and feed.position > $2 and feed.position <= $3
            and change is not null and (image is not null or change = 'deleted') and ($4::text[] = '{}' or kind = any($4))
         order by feed.position limit $5",
    )
    .bind(account)
    .bind(after)
    .bind(window)
    .bind(kinds)
    .bind(limit)
    .fetch(connection);
    let (mut entries, mut bytes, mut is_cut) = (Vec::new(), PageBytes::new(account), false);
    while let Some(row) = rows.try_next().await? {
        // The rows after the last are read too, as a connection with unread rows cannot be used again.
        is_cut = is_cut || bytes.add(&row)? > MAX_BYTES && !entries.is_empty();
        if !is_cut {
            entries.push(Entry::from_row(&row)?);
        }
    }
    let is_full = is_cut || i64::try_from(entries.len()).is_ok_and(|count| count == limit);
    let position = entries.last().filter(|_| is_full).map_or(window.max(after), |last| last.position);
    Ok(Page { entries, position, more: position < end })
}
