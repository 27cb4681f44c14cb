//! Gives log entries their positions, after the commit.
//!
//! Any process may number an account's entries at any time: the statement that stores a batch moves the end of the feed,
//! and does nothing if another process has moved it since the batch was read. Entries are ordered by the time in their
//! ids, and those of one record by version. The versions of a record are committed one after the other, so when an entry
//! is visible, the earlier ones of its record are too.

use std::collections::HashMap;

use chassis_base::{AccountId, Error};
use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection, Row as _};
use uuid::Uuid;

use super::chain::{GENESIS, Link};
use super::event::Listener;
use crate::db::Db;
use crate::rows::{Column, Rows, bind, source};

/// How many entries are numbered at once.
const BATCH: usize = 500;

#[derive(chassis_derive::FromRow)]
struct Entry {
    id: Uuid,
    at: DateTime<Utc>,
    actor: String,
    kind: String,
    record_id: String,
    version: i64,
    image_hash: Option<Vec<u8>>,
    event: Option<String>,
}

/// The end of the feed.
struct Head {
    position: i64,
    hash: Vec<u8>,
}

/// Numbers a batch of what is pending of the account, in two round trips. Returns whether there may be more: the caller
/// decides who is next, so that an account with many entries does not hold up others.
pub async fn number(db: &Db, account: AccountId) -> Result<bool, Error> {
    let batch =
        db.autocommit(async |connection| number_batch(connection, account, &db.listeners).await).await?;
    if let Some(position) = batch.end {
        db.watch.numbered(account, position);
    }
    Ok(batch.has_more)
}

#[derive(Default)]
struct Numbered {
    /// The last position that was given.
    end: Option<i64>,
    /// Whether there may be more.
    has_more: bool,
}

async fn number_batch(
    connection: &mut PgConnection,
    account: AccountId,
    listeners: &[Listener],
) -> Result<Numbered, Error> {
    let (head, mut entries) = read(connection, account).await?;
    if entries.is_empty() {
        return Ok(Numbered::default());
    }
    let is_full = entries.len() >= BATCH;
    if is_full {
        add_versions_beyond(connection, account, &mut entries).await?;
    }
    sort(&mut entries);
    let batch = Batch::new(&head, &entries, listeners);
    let end = batch.positions.last().copied();
    let is_stored = batch.store(connection, account, &head).await?;
    Ok(Numbered { end: end.filter(|_| is_stored), has_more: is_full || !is_stored })
}

/// The end of the feed and the oldest pending entries. A probe for each, whatever Postgres knows about the size of the
/// tables: `pending` is empty at one moment and full at the next.
async fn read(connection: &mut PgConnection, account: AccountId) -> Result<(Head, Vec<Entry>), Error> {
    #[derive(chassis_derive::FromRow)]
    struct Row {
        position: Option<i64>,
        hash: Option<Vec<u8>>,
        #[sqlx(flatten)]
        entry: Entry,
    }
    let rows: Vec<Row> = sqlx::query_as(
        "select entry.id, entry.at, actor, kind, record_id, version, image_hash, event, head.position, head.hash
         from (select id from pending where account_id = $1 order by id limit $2) pending
         cross join lateral (
            select id, at, actor, kind, record_id, version, image_hash, event from log
            where account_id = $1 and id = pending.id limit 1) entry
         left join feed_head head on head.account_id = $1
         order by entry.id",
    )
    .bind(account)
    .bind(i64::try_from(BATCH).unwrap_or(i64::MAX))
    .fetch_all(connection)
    .await?;
    let head = rows.first().and_then(|row| Some(Head { position: row.position?, hash: row.hash.clone()? }));
    let head = head.unwrap_or_else(|| Head { position: 0, hash: GENESIS.to_vec() });
    Ok((head, rows.into_iter().map(|row| row.entry).collect()))
}

/// Adds the pending entries of the same records that are not in the batch: if clocks differ, an earlier version can have
/// a later id.
async fn add_versions_beyond(
    connection: &mut PgConnection,
    account: AccountId,
    entries: &mut Vec<Entry>,
) -> Result<(), Error> {
    let last = entries.last().map(|entry| entry.id).unwrap_or_default();
    let beyond: Vec<Entry> = sqlx::query_as(
        "select entry.id, entry.at, actor, kind, record_id, version, image_hash, event
         from pending
         join log entry on entry.account_id = pending.account_id and entry.id = pending.id
         where pending.account_id = $1 and pending.id > $2
            and (kind, record_id) in (select * from unnest($3::text[], $4::text[]))
         order by pending.id",
    )
    .bind(account)
    .bind(last)
    .bind(entries.iter().map(|entry| entry.kind.as_str()).collect::<Vec<_>>())
    .bind(entries.iter().map(|entry| entry.record_id.as_str()).collect::<Vec<_>>())
    .fetch_all(connection)
    .await?;
    entries.extend(beyond);
    Ok(())
}

/// Sorts by time. The entries of one record share the places that these have, in the order of their versions.
fn sort(entries: &mut Vec<Entry>) {
    entries.sort_by_key(|entry| entry.id);
    let mut places: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for (place, entry) in entries.iter().enumerate() {
        places.entry((&entry.kind, &entry.record_id)).or_default().push(place);
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    for places in places.into_values().filter(|places| places.len() > 1) {
        let mut sorted = places.clone();
        sorted.sort_by_key(|place| (entries[*place].version, entries[*place].id));
        for (place, from) in places.into_iter().zip(sorted) {
            order[place] = from;
        }
    }
    let mut unsorted: Vec<Option<Entry>> = entries.drain(..).map(Some).collect();
    entries.extend(order.into_iter().filter_map(|from| unsorted[from].take()));
}

/// A batch with its positions, as the statement takes it.
struct Batch<'a> {
    ids: Vec<Uuid>,
    positions: Vec<i64>,
    hashes: Vec<Vec<u8>>,
    last_at: DateTime<Utc>,
    /// Listeners with an event in the batch: the position of the last one, and the time of the first.
    readers: Vec<(&'a str, i64, DateTime<Utc>)>,
}

impl<'a> Batch<'a> {
    fn new(head: &Head, entries: &[Entry], listeners: &'a [Listener]) -> Self {
        let mut batch = Self {
            ids: Vec::with_capacity(entries.len()),
            positions: Vec::with_capacity(entries.len()),
            hashes: Vec::with_capacity(entries.len()),
            last_at: DateTime::UNIX_EPOCH,
            readers: Vec::new(),
        };
        let mut hash = head.hash.clone();
        for (position, entry) in (head.position + 1..).zip(entries) {
            let link = Link {
                position,
                kind: &entry.kind,
                record_id: &entry.record_id,
                version: entry.version,
                at: entry.at,
                actor: &entry.actor,
                image_hash: entry.image_hash.as_deref(),
            };
            hash = link.hash(&hash).to_vec();
            batch.ids.push(entry.id);
            batch.positions.push(position);
            batch.hashes.push(hash.clone());
            batch.last_at = batch.last_at.max(entry.at);
            batch.add_readers(entry, position, listeners);
        }
        batch
    }

    fn add_readers(&mut self, entry: &Entry, position: i64, listeners: &'a [Listener]) {
        let Some(event) = &entry.event else { return };
        for listener in listeners.iter().filter(|listener| listener.wants(event)) {
            match self.readers.iter_mut().find(|(name, ..)| *name == listener.name) {
                Some((_, target, _)) => *target = position,
                None => self.readers.push((&listener.name, position, entry.at)),
            }
        }
    }

    /// Returns false, and stores nothing, if the end of the feed is no longer `head`.
    async fn store(
        self,
        connection: &mut PgConnection,
        account: AccountId,
        head: &Head,
    ) -> Result<bool, Error> {
        let (Some(last), Some(hash)) = (self.positions.last(), self.hashes.last()) else { return Ok(true) };
        let (rows, readers) = (Rows::of(self.ids.len()), Rows::of(self.readers.len()));
        let sql = store_sql(rows, readers);
        let names: Vec<&str> = self.readers.iter().map(|reader| reader.0).collect();
        let targets: Vec<i64> = self.readers.iter().map(|reader| reader.1).collect();
        let since: Vec<DateTime<Utc>> = self.readers.iter().map(|reader| reader.2).collect();
        let mut query = sqlx::query(AssertSqlSafe(sql.as_str()));
        query = query.bind(account).bind(head.position).bind(last).bind(hash).bind(self.last_at);
        query = bind(bind(bind(query, &self.ids, rows), &self.positions, rows), &self.hashes, rows);
        if readers != Rows::None {
            query = bind(bind(bind(query, &names, readers), &targets, readers), &since, readers);
        }
        let moved: i64 = query.fetch_one(connection).await?.try_get(0)?;
        Ok(moved > 0)
    }
}

const NUMBERED: [Column; 3] = [("id", "uuid"), ("position", "bigint"), ("hash", "bytea")];
const READER: [Column; 3] = [("name", "text"), ("target", "bigint"), ("since", "timestamptz")];

/// The statement that stores a batch. It has no part for listeners if the batch has no event for any.
fn store_sql(entries: Rows, readers: Rows) -> String {
    let numbered = source("entry", &NUMBERED, entries, 5);
    let is_numbered = if entries == Rows::One { "id = $6" } else { "id = any($6)" };
    let reader = source("behind", &READER, readers, 8);
    let behind = format!(
        ", behind as (
            insert into reader (account_id, name, position, target, since)
            select $1, name, $2, target, since from {reader} where exists (select from head)
            on conflict (account_id, name) do update set target = excluded.target,
                since = case when reader.target > reader.position then reader.since else excluded.since end
        )"
    );
    let behind = if readers == Rows::None { "" } else { &behind };
    format!(
        "with head as (
            insert into feed_head (account_id, position, hash, at) values ($1, $3, $4, $5)
            on conflict (account_id) do update
                set position = excluded.position, hash = excluded.hash, at = excluded.at
                where feed_head.position = $2
            returning position
        ), numbered as (
            insert into feed (account_id, position, id, hash)
            select $1, position, id, hash from {numbered} where exists (select from head)
        ), done as (
            delete from pending where account_id = $1 and {is_numbered} and exists (select from head)
        ){behind}
        select count(*) from head"
    )
}

#[cfg(test)]
mod tests {
    use chassis_testing::TestDatabase;
    use sqlx::{Executor, SqlSafeStr};

    use super::*;

    static NONE: sqlx::migrate::Migrator = sqlx::migrate::Migrator::DEFAULT;

    #[tokio::test]
    async fn postgres_understands_every_form_of_the_statement() {
        let database = TestDatabase::new(&[("bare", &NONE)]).await;
        let mut connection = database.connect().await;
        sqlx::raw_sql("set search_path = bare, public").execute(&mut connection).await.unwrap();
        for entries in [Rows::One, Rows::Several] {
            for readers in [Rows::None, Rows::One, Rows::Several] {
                let sql = store_sql(entries, readers);
                let prepared = (&mut connection).prepare(AssertSqlSafe(sql.clone()).into_sql_str()).await;
                assert!(prepared.is_ok(), "{sql}: {:?}", prepared.err());
            }
        }
    }

    fn entry(id: u128, record_id: &str, version: i64) -> Entry {
        Entry {
            id: Uuid::from_u128(id),
            at: DateTime::UNIX_EPOCH,
            actor: String::new(),
            kind: "thing".to_owned(),
            record_id: record_id.to_owned(),
            version,
            image_hash: None,
            event: None,
        }
    }

    #[test]
    fn versions_of_a_record_follow_each_other_although_clocks_differ() {
        let mut entries = vec![entry(4, "a", 1), entry(1, "a", 2), entry(2, "b", 9), entry(3, "a", 3)];
        sort(&mut entries);
        let order: Vec<_> = entries.iter().map(|entry| (entry.record_id.as_str(), entry.version)).collect();
        assert_eq!(order, [("a", 1), ("b", 9), ("a", 2), ("a", 3)]);
    }
}
