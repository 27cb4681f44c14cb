//! Reads the log in the order of its positions.

use chassis_base::paging::MAX_PAGE_BYTES;
use chassis_base::{AccountId, Error};
use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use proto::api::Problem;
use proto::log::{Change, ReadHistoryRequest};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};

use crate::long_pages::PageBytes;

/// How many positions one query looks through: a reader of few kinds skips many entries.
const WINDOW: i64 = 5000;
/// The most bytes of a page, unless its first entry is longer. Below what a gRPC client takes by default, 4 MiB.
const MAX_BYTES: usize = 2 << 20;
const TOO_LONG: &str = "The records that were asked for have more than 4 MiB together. Ask for fewer at a time, for example with a \
                        smaller `per_page`.";
const BEYOND: &str = "The log ends before this position: the data was restored from a backup. Read the changes again \
                      from the beginning.";

/// The changes after a position.
pub(super) struct Page {
    pub entries: Vec<Entry>,
    /// The position up to which these are all.
    pub position: i64,
    pub more: bool,
}

#[derive(chassis_derive::FromRow)]
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
#[derive(chassis_derive::FromRow)]
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
    if after > end {
        return Err(Error::problem(Problem::CursorExpired, BEYOND));
    }
    let window = end.min(after.saturating_add(WINDOW));
    // What is chosen is bounded in bytes before long images are read.
    let mut rows = sqlx::query(
        "with chosen as (
            select feed.position, feed.id, coalesce(octet_length(image), 0) as size
            from feed join log entry on entry.account_id = feed.account_id and entry.id = feed.id
            where feed.account_id = $1 and feed.position > $2 and feed.position <= $3 and change is not null
                and (image is not null or change = 'deleted') and ($4::text[] = '{}' or kind = any($4))
                and not exists (
                    select from forgotten_history forgotten where forgotten.account_id = $1
                        and forgotten.record_id = entry.record_id and forgotten.kind = entry.kind
                        and entry.version <= forgotten.version)
            order by feed.position limit $5
        ), summed as (
            select position, id, sum(size) over (order by position) - size as before from chosen
        )
        select summed.position, at, actor, request_id, kind, record_id, version, change, message, image
        from summed join log entry on entry.account_id = $1 and entry.id = summed.id
        where before <= $6 order by summed.position",
    )
    .bind(account)
    .bind(after)
    .bind(window)
    .bind(kinds)
    .bind(limit)
    .bind(i64::try_from(MAX_BYTES).unwrap_or(i64::MAX))
    .fetch(connection);
    let mut bounded = Bounded::new(account, limit);
    while let Some(row) = rows.try_next().await? {
        bounded.add(&row)?;
    }
    let Bounded { kept: entries, is_cut, .. } = bounded;
    let is_full = is_cut || i64::try_from(entries.len()).is_ok_and(|count| count == limit);
    let position = entries.last().filter(|_| is_full).map_or(window.max(after), |last| last.position);
    Ok(Page { entries, position, more: position < end })
}

/// The later versions of one record, with whether there are more. A state that was forgotten is left out.
pub(super) async fn history(
    connection: &mut PgConnection,
    account: AccountId,
    input: &ReadHistoryRequest,
    limit: i64,
) -> Result<(Vec<Entry>, bool), Error> {
    let mut rows = sqlx::query(
        "select 0::bigint as position, at, actor, request_id, kind, record_id, version, change, message, image
         from log entry
         where account_id = $1 and record_id = $2 and kind = $3 and version > $4
            and change is not null and (image is not null or change = 'deleted')
            and not exists (
                select from forgotten_history forgotten where forgotten.account_id = $1
                    and forgotten.record_id = entry.record_id and forgotten.kind = entry.kind
                    and entry.version <= forgotten.version)
         order by version limit $5",
    )
    .bind(account)
    .bind(&input.record_id)
    .bind(&input.kind)
    .bind(input.after)
    .bind(limit + 1)
    .fetch(connection);
    let mut entries = Bounded::new(account, limit);
    while let Some(row) = rows.try_next().await? {
        entries.add(&row)?;
    }
    Ok((entries.kept, entries.is_cut))
}

/// A record as it is now.
#[derive(chassis_derive::FromRow)]
pub(super) struct Latest {
    pub record_id: String,
    pub message: String,
    pub image: Vec<u8>,
}

/// The present states of these records, in no order.
pub(super) async fn latest(
    connection: &mut PgConnection,
    account: AccountId,
    kind: &str,
    ids: &[String],
) -> Result<Vec<Latest>, Error> {
    let mut rows = sqlx::query(
        "select latest.record_id, latest.message, latest.image
         from (select distinct unnest($3::text[]) as record_id) wanted
         cross join lateral (
            select record_id, change, message, image from log entry
            where entry.account_id = $1 and entry.record_id = wanted.record_id and entry.kind = $2
                and entry.change is not null and entry.version > 0
            order by entry.version desc limit 1) latest
         where latest.change <> 'deleted' and latest.image is not null",
    )
    .bind(account)
    .bind(kind)
    .bind(ids)
    .fetch(connection);
    let (mut found, mut bytes, mut is_long) = (Vec::new(), PageBytes::new(account), false);
    // The rows after the last are read too, as a connection with unread rows cannot be used again.
    while let Some(row) = rows.try_next().await? {
        is_long = is_long || bytes.add(&row)? > MAX_PAGE_BYTES;
        if !is_long {
            found.push(Latest::from_row(&row)?);
        }
    }
    if is_long {
        return Err(Error::problem(Problem::TooLarge, TOO_LONG));
    }
    Ok(found)
}

/// Entries up to a number and up to [`MAX_BYTES`].
struct Bounded {
    kept: Vec<Entry>,
    /// Whether entries were left out.
    is_cut: bool,
    bytes: PageBytes,
    limit: i64,
}

impl Bounded {
    fn new(account: AccountId, limit: i64) -> Self {
        Self { kept: Vec::new(), is_cut: false, bytes: PageBytes::new(account), limit }
    }

    /// The rows after the last are read too, as a connection with unread rows cannot be used again.
    fn add(&mut self, row: &PgRow) -> Result<(), Error> {
        let is_full = i64::try_from(self.kept.len()).is_ok_and(|count| count >= self.limit);
        self.is_cut = self.is_cut || is_full || self.bytes.add(row)? > MAX_BYTES && !self.kept.is_empty();
        if !self.is_cut {
            self.kept.push(Entry::from_row(row)?);
        }
        Ok(())
    }
}
