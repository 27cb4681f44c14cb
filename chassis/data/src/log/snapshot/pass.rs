//! A pass through the records of an account, a page in each transaction. What was compared and logged commits together with
//! the place, so a pass that was interrupted goes on where it was.

use std::collections::HashMap;

use chassis_base::error::RecordRef;
use chassis_base::{AccountId, Error};
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

use super::place::Place;
use super::table::RecordTable;
use super::{Records, SharedRecords, Shown};
use crate::log::image::Image;
use crate::write::Tx;

/// The last part of a pass: entries of records that are gone.
pub(super) const REMOVED: &str = "removed";
/// How many records a transaction locks and compares. Small, because writers wait for it.
const PAGE: i64 = 50;
/// How many of them are read before their bytes are counted.
const SLICE: usize = 10;
/// About how many bytes a transaction reads.
const MAX_BYTES: usize = 2 << 20;
/// How many records of the log a transaction looks for.
const LOG_PAGE: i64 = 200;

/// What a step of a pass has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How many entries the pass has written so far.
    pub logged: i64,
    pub is_done: bool,
}

/// Compares the next page; begins a pass if none is under way.
pub async fn advance(tx: &mut Tx<'_>, records: &SharedRecords) -> Result<Progress, Error> {
    let place = Place::lock(tx).await?.filter(|place| place.kind.is_some());
    let place = place.unwrap_or_else(|| Place::begin(tx, first(records.get())));
    step(tx, records.get(), place).await
}

/// Compares the next page of the pass that is under way. Without one, says how the last has ended.
pub async fn resume(tx: &mut Tx<'_>, records: &SharedRecords) -> Result<Progress, Error> {
    match Place::lock(tx).await? {
        Some(place) if place.kind.is_some() => step(tx, records.get(), place).await,
        place => Ok(Progress { logged: place.map_or(0, |place| place.logged), is_done: true }),
    }
}

/// Begins a pass, whether one is under way or not.
pub async fn restart(tx: &mut Tx<'_>, records: &SharedRecords) -> Result<Progress, Error> {
    Place::lock(tx).await?;
    let place = Place::begin(tx, first(records.get()));
    step(tx, records.get(), place).await
}

/// Records that a write could not log, because the log has their versions already.
pub(crate) struct Collided {
    pub records: SharedRecords,
    pub refused: Vec<RecordRef>,
}

/// Compares these records, outside a pass.
pub(crate) async fn relog(tx: &mut Tx<'_>, collided: &Collided) -> Result<(), Error> {
    let (account, records) = (tx.account(), collided.records.get());
    for table in records.tables() {
        let refused = collided.refused.iter().filter(|record| record.kind == table.kind);
        let ids: Vec<String> = refused.map(|record| record.id.clone()).collect();
        if ids.is_empty() {
            continue;
        }
        let ids = table.lock(tx.db(), account, &ids).await?;
        let mut shown = Shown::default();
        records.show(tx, table.kind, &ids, &mut shown).await?;
        log_differing(tx, records, table, shown).await?;
    }
    Ok(())
}

fn first(records: &dyn Records) -> &'static str {
    records.tables().first().map_or(REMOVED, |table| table.kind)
}

/// Compares a page. Kinds with few records share one, so that a small account is done in one transaction.
async fn step(tx: &mut Tx<'_>, records: &dyn Records, mut place: Place) -> Result<Progress, Error> {
    let (tables, mut compared) = (records.tables(), 0);
    while compared < PAGE
        && let Some(kind) = place.kind.take()
    {
        let index = tables.iter().position(|table| table.kind == kind);
        let page = match index {
            Some(index) => log_page(tx, records, &tables[index], &place.after).await?,
            None => log_removed(tx, tables, &place.after).await?,
        };
        place.logged += page.logged;
        compared += page.compared;
        place.kind = match (&page.last, index) {
            (Some(_), _) => Some(kind),
            (None, Some(index)) => Some(tables.get(index + 1).map_or(REMOVED, |table| table.kind).to_owned()),
            (None, None) => None,
        };
        place.after = page.last.unwrap_or_default();
    }
    place.store(tx).await?;
    Ok(Progress { logged: place.logged, is_done: place.kind.is_none() })
}

/// Records of one kind, or of the log, that were compared.
struct Page {
    compared: i64,
    logged: i64,
    /// The last record; `None` if there are no more.
    last: Option<String>,
}

/// Logs those records of a page that differ from what the log shows last.
async fn log_page(
    tx: &mut Tx<'_>,
    records: &dyn Records,
    table: &RecordTable,
    after: &str,
) -> Result<Page, Error> {
    let account = tx.account();
    let (ids, is_full) = table.lock_page(tx.db(), account, after, PAGE).await?;
    let (mut shown, mut taken) = (Shown::default(), 0);
    for slice in ids.chunks(SLICE) {
        if shown.bytes > MAX_BYTES {
            break;
        }
        records.show(tx, table.kind, slice, &mut shown).await?;
        taken += slice.len();
    }
    let logged = log_differing(tx, records, table, shown).await?;
    let has_more = is_full || taken < ids.len();
    let last = ids.get(taken.saturating_sub(1)).filter(|_| has_more).cloned();
    // A page that has grown too long leaves no room for another.
    let compared = if has_more { PAGE } else { i64::try_from(taken).unwrap_or(PAGE) };
    Ok(Page { compared, logged, last })
}

/// Logs those of the records that differ from what the log shows last. A record whose version is in the log already, with
/// something else, gets a new one. The rows are locked. Returns how many have an entry now.
async fn log_differing(
    tx: &mut Tx<'_>,
    records: &dyn Records,
    table: &RecordTable,
    shown: Shown,
) -> Result<i64, Error> {
    let account = tx.account();
    let ids: Vec<&str> = shown.records.iter().map(|(id, _)| id.as_str()).collect();
    let latest = latest(tx.db(), account, table, &ids).await?;
    let (mut logged, mut stale, mut versions) = (0, Vec::new(), Vec::new());
    for (id, image) in shown.records {
        match latest.get(&id) {
            Some(latest) if latest.shows(&image, table.volatile) => {}
            Some(latest) if image.version.unwrap_or_default() <= latest.version => {
                versions.push(latest.version);
                stale.push(id);
            }
            Some(_) | None => {
                tx.log_image(table.kind, id, image);
                logged += 1;
            }
        }
    }
    if stale.is_empty() {
        return Ok(logged);
    }
    let now = tx.now();
    table.raise(tx.db(), account, &stale, &versions, now).await?;
    records.raised(tx, table.kind, &stale).await?;
    let mut raised = Shown::default();
    records.show(tx, table.kind, &stale, &mut raised).await?;
    for (id, image) in raised.records {
        tx.log_image(table.kind, id, image);
        logged += 1;
    }
    Ok(logged)
}

/// The last change of a record in the log.
#[derive(chassis_derive::FromRow)]
struct Latest {
    record_id: String,
    version: i64,
    image_hash: Option<Vec<u8>>,
    /// `None` where it is not needed.
    image: Option<Vec<u8>>,
}

impl Latest {
    /// Whether the log shows the record as it is now.
    fn shows(&self, image: &Image, volatile: &[u32]) -> bool {
        if volatile.is_empty() {
            return self.image_hash.as_deref() == Some(&Sha256::digest(&image.bytes)[..]);
        }
        self.image.as_deref().is_some_and(|known| image.equals(known, volatile))
    }
}

/// The last changes of these records. What was moved from `audit` has no position, and so is not in the feed.
async fn latest(
    connection: &mut PgConnection,
    account: AccountId,
    table: &RecordTable,
    ids: &[&str],
) -> Result<HashMap<String, Latest>, Error> {
    let rows: Vec<Latest> = sqlx::query_as(
        "select latest.record_id, latest.version, latest.image_hash, case when $4 then latest.image end as image
         from unnest($3::text[]) as wanted (record_id)
         cross join lateral (
            select record_id, version, image_hash, image from log entry
            where entry.account_id = $1 and entry.record_id = wanted.record_id and entry.kind = $2
                and entry.change is not null and entry.version > 0
            order by entry.version desc limit 1) latest",
    )
    .bind(account)
    .bind(table.kind)
    .bind(ids)
    .bind(!table.volatile.is_empty())
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|latest| (latest.record_id.clone(), latest)).collect())
}

/// A record in the log, after its last change.
#[derive(chassis_derive::FromRow)]
struct Known {
    record_id: String,
    kind: String,
    change: String,
}

/// Logs the removal of those records that exist in the log, but not in their tables. The place is `kind/id`.
async fn log_removed(tx: &mut Tx<'_>, tables: &[RecordTable], after: &str) -> Result<Page, Error> {
    let account = tx.account();
    let (kind, record_id) = after.split_once('/').unwrap_or_default();
    let known: Vec<Known> = sqlx::query_as(
        "select distinct on (record_id, kind) record_id, kind, change from log
         where account_id = $1 and change is not null and version > 0 and (record_id, kind) > ($2, $3)
         order by record_id, kind, version desc limit $4",
    )
    .bind(account)
    .bind(record_id)
    .bind(kind)
    .bind(LOG_PAGE)
    .fetch_all(tx.db())
    .await?;
    let mut logged = 0;
    for table in tables {
        let shown = known.iter().filter(|known| known.kind == table.kind && known.change != "deleted");
        let ids: Vec<String> = shown.map(|known| known.record_id.clone()).collect();
        if ids.is_empty() {
            continue;
        }
        let existing = table.lock(tx.db(), account, &ids).await?;
        for id in ids.iter().filter(|id| !existing.contains(id)) {
            // If somebody removes it at the same time, the entry that is written second is left out, or collides and is
            // decided again.
            tx.removed(table.kind, id);
            logged += 1;
        }
    }
    let compared = i64::try_from(known.len()).unwrap_or(LOG_PAGE);
    let last = known.last().filter(|_| compared == LOG_PAGE);
    Ok(Page { compared, logged, last: last.map(|known| format!("{}/{}", known.kind, known.record_id)) })
}
