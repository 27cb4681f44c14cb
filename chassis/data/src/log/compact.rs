//! Forgets old images and the data of old events. The role of the running service can only append to the log and read it,
//! so this is a command that is run from time to time with the rights of the schema's owner.
//!
//! The latest image of every record stays, because it is the record. Entries stay too: their positions, hashes and the
//! hashes of their images keep the chain whole.

use chassis_base::{AccountId, Error};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use crate::connect::connect;

/// How many entries one transaction changes.
const BATCH: i64 = 1000;
/// After this time no program of the release before, which wrote the table `audit`, runs any more.
const UPGRADE: TimeDelta = TimeDelta::days(1);

/// What a run has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Entries whose image or event data was forgotten.
    pub forgotten: u64,
    /// Entries that were moved from the table of the release before.
    pub moved: u64,
}

/// Forgets the images that are older than `days` at `now`, account by account, except the latest of each record, and the
/// data of all events that are as old. With 0 days these are kept. Whatever their age, forgets what a service wants to be
/// forgotten ([`forget`](super::forget)).
pub async fn compact(url: &str, schema: &str, days: u16, now: DateTime<Utc>) -> Result<Compacted, Error> {
    let mut compacted = Compacted::default();
    let mut connection = connect(url, schema).await?;
    let mut account = next_account(&mut connection, AccountId::trust(Uuid::nil())).await?;
    while let Some(current) = account {
        compacted.moved += move_audit(&mut connection, current, first_id(now - UPGRADE)).await?;
        compacted.forgotten += forget_noted(&mut connection, current).await?;
        if days > 0 {
            let kept_from = now - TimeDelta::days(days.into());
            compacted.forgotten += forget(&mut connection, current, kept_from).await?;
        }
        account = next_account(&mut connection, current).await?;
    }
    connection.close().await?;
    Ok(compacted)
}

/// The next account that has entries, found by the primary keys, so that the cost does not grow with the entries.
async fn next_account(connection: &mut PgConnection, after: AccountId) -> Result<Option<AccountId>, Error> {
    let sql = "select account_id from (
            (select account_id from log where account_id > $1 order by account_id limit 1)
            union all
            (select account_id from audit where account_id > $1 order by account_id limit 1)) next
         order by account_id limit 1";
    Ok(sqlx::query_scalar(sql).bind(after).fetch_optional(connection).await?)
}

/// Walks through the account's old entries by the primary key. The data of an event goes even if its entry has the latest
/// state of a record or tells its deletion: it shows other records too, and is only there to be delivered. What a listener
/// has still to read stays.
async fn forget(
    connection: &mut PgConnection,
    account: AccountId,
    kept_from: DateTime<Utc>,
) -> Result<u64, Error> {
    let unread = unread_since(connection, account).await?;
    let oldest = first_id(unread.map_or(kept_from, |unread| unread.min(kept_from)));
    let (mut forgotten, mut after) = (0, Uuid::nil());
    loop {
        let found: Vec<(Uuid, bool)> = sqlx::query_as(
            "select id, is_superseded from (
                select id, data, image is not null and exists (
                    select from log later
                    where later.account_id = $1 and later.record_id = entry.record_id and later.kind = entry.kind
                        and later.change is not null and later.version > entry.version) as is_superseded
                from log entry
                where account_id = $1 and id > $2 and id < $3 and (image is not null or data is not null)
                    and not exists (select from reader_exception refused
                        where refused.account_id = $1 and refused.id = entry.id)) old
             where data is not null or is_superseded order by id limit $4",
        )
        .bind(account)
        .bind(after)
        .bind(oldest)
        .bind(BATCH)
        .fetch_all(&mut *connection)
        .await?;
        let Some((last, _)) = found.last() else { return Ok(forgotten) };
        after = *last;
        let ids: Vec<Uuid> = found.iter().map(|(id, _)| *id).collect();
        let superseded: Vec<Uuid> =
            found.iter().filter(|(_, is_superseded)| *is_superseded).map(|(id, _)| *id).collect();
        forgotten += sqlx::query(
            "update log set data = null, image = case when id = any($3) then null else image end
             where account_id = $1 and id = any($2)",
        )
        .bind(account)
        .bind(&ids)
        .bind(&superseded)
        .execute(&mut *connection)
        .await?
        .rows_affected();
    }
}

/// Forgets what the services have noted ([`forget`](super::forget)): earlier states of records, with the data of their events;
/// and what else names such a record. A state is only forgotten if the record has a later one. If a listener has still to
/// read some of it, the next run does the rest.
async fn forget_noted(connection: &mut PgConnection, account: AccountId) -> Result<u64, Error> {
    let noted: Option<DateTime<Utc>> = sqlx::query_scalar(
        "select max(at) from forgotten_history where account_id = $1 and removed_at is null",
    )
    .bind(account)
    .fetch_one(&mut *connection)
    .await?;
    let Some(noted) = noted else { return Ok(0) };
    let unread = unread_since(connection, account).await?;
    let end = first_id(unread.map_or(noted, |unread| unread.min(noted)) + TimeDelta::milliseconds(1));
    let sql = "with noted as materialized (
            select record_id, kind, version, at, kind = '' as is_name from forgotten_history
            where account_id = $1 and removed_at is null
        )
        select id from log entry
        where account_id = $1 and id > $2 and id < $3
            and (data is not null or image is not null and exists (
                select from log later
                where later.account_id = $1 and later.record_id = entry.record_id and later.kind = entry.kind
                    and later.change is not null and later.version > entry.version))
            and not exists (select from reader_exception refused
                where refused.account_id = $1 and refused.id = entry.id)
            and exists (select from noted where entry.at <= noted.at and (
                noted.record_id = entry.record_id and noted.kind = entry.kind and entry.version <= noted.version
                or is_name and (strpos(data, noted.record_id) > 0
                    or position(convert_to(noted.record_id, 'UTF8') in image) > 0)))
        order by id limit $4";
    let (mut forgotten, mut after) = (0, Uuid::nil());
    loop {
        let query = sqlx::query_scalar(sql).bind(account).bind(after).bind(end).bind(BATCH);
        let found: Vec<Uuid> = query.fetch_all(&mut *connection).await?;
        let Some(last) = found.last() else { break };
        after = *last;
        forgotten += sqlx::query(
            "update log entry set data = null, image = case when not exists (
                select from log later
                where later.account_id = $1 and later.record_id = entry.record_id and later.kind = entry.kind
                    and later.change is not null and later.version > entry.version) then image end
             where account_id = $1 and id = any($2)",
        )
        .bind(account)
        .bind(&found)
        .execute(&mut *connection)
        .await?
        .rows_affected();
    }
    if unread.is_none_or(|unread| unread > noted) {
        sqlx::query(
            "update forgotten_history set removed_at = $2
             where account_id = $1 and removed_at is null and at <= $2",
        )
        .bind(account)
        .bind(noted)
        .execute(connection)
        .await?;
    }
    Ok(forgotten)
}

/// The time of the oldest event that a listener has not read.
async fn unread_since(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Option<DateTime<Utc>>, Error> {
    let sql = "select min(since) from reader where account_id = $1 and target > position";
    Ok(sqlx::query_scalar(sql).bind(account).fetch_one(connection).await?)
}

/// Moves the entries that the release before wrote to `audit` into the log, the newest first: they get the versions
/// before those that the record has there, and no positions.
async fn move_audit(connection: &mut PgConnection, account: AccountId, newest: Uuid) -> Result<u64, Error> {
    let mut all = 0;
    loop {
        let moved = sqlx::query(
            "with old as (
                select id from audit where account_id = $1 and id < $2 order by id desc limit $3
            ), gone as (
                delete from audit where account_id = $1 and id in (select id from old) returning *
            )
            insert into log (account_id, id, at, actor, request_id, method, kind, record_id, version, change, message,
                image, image_hash)
            select $1, id, at, actor, request_id, method, entity_type, entity_id,
                coalesce((select min(version) from log known where known.account_id = $1
                    and known.record_id = entity_id and known.kind = entity_type and known.change is not null), 1)
                    - row_number() over (partition by entity_type, entity_id order by id desc),
                case when image is null then 'deleted' else 'updated' end, message, image, sha256(image)
            from gone",
        )
        .bind(account)
        .bind(newest)
        .bind(BATCH)
        .execute(&mut *connection)
        .await?
        .rows_affected();
        all += moved;
        if moved == 0 {
            return Ok(all);
        }
    }
}

/// The smallest id that an entry of this millisecond can have.
pub(crate) fn first_id(time: DateTime<Utc>) -> Uuid {
    let millis = u64::try_from(time.timestamp_millis()).unwrap_or_default();
    Uuid::from_u128(u128::from(millis) << 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_moment_come_after_the_first_of_it_and_before_the_next() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::milliseconds(1_794_740_400_123);
        let id = chassis_base::Clock::held_at(now).id();
        assert!(first_id(now) <= id && id < first_id(now + TimeDelta::milliseconds(1)));
        assert_eq!(first_id(DateTime::<Utc>::MIN_UTC), Uuid::nil());
    }
}
