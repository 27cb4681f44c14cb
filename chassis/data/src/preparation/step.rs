//! One transaction of a preparation.
//!
//! It first locks all slots of the list's counter. Every write that changes which records the list has updates one of them,
//! so from then on no such write commits, and the next statement sees all that have. A write that waits for a slot meanwhile
//! has looked for its segment already; it finds another epoch and runs again. Two preparations of a list come one after the
//! other.

use chassis_base::Error;
use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{Arguments, AssertSqlSafe, FromRow, Row};
use uuid::Uuid;

use super::{GROUP, MAX_SKIPPED, Preparation, SEGMENT, SETTLED};
use crate::log::compact::first_id;
use crate::totals::{ALL_DAYS, SLOTS};
use crate::write::Tx;

/// How many segments a transaction makes. Writers of the list wait for it.
const MAX_SEGMENTS: i64 = 20;
/// A transaction of the release before may have made its entry in `audit` this long before it committed.
const LONGEST_WRITE: TimeDelta = TimeDelta::minutes(5);

pub(super) struct Done {
    pub has_changed: bool,
    pub is_last: bool,
}

const NOTHING: Done = Done { has_changed: false, is_last: true };

/// A place in the order of a list.
#[derive(Clone, Copy, Debug, chassis_derive::FromRow)]
struct Place {
    created_at: DateTime<Utc>,
    id: Uuid,
}

/// Makes the next segments of a list, after its counter if that is not known.
pub(super) async fn run(tx: &mut Tx<'_>, preparation: &Preparation) -> Result<Done, Error> {
    tx.unaudited("counters of lists are no records");
    if !are_all_programs_of_this_release(tx).await? {
        return Ok(NOTHING);
    }
    lock(tx, preparation).await?;
    let is_begun = is_prepared(tx, preparation).await?;
    if !is_begun && !begin(tx, preparation).await? {
        return Ok(NOTHING);
    }
    if !preparation.with_segments {
        return Ok(Done { has_changed: !is_begun, is_last: true });
    }
    let (first, last, split) = match find_long_segment(tx, preparation).await? {
        Some(Long { after, last }) => (after, last, true),
        None => (find_end(tx, preparation).await?, Place::settled(tx.now()), false),
    };
    let ends = list_ends(tx, preparation, first, last).await?;
    let is_last = !split && i64::try_from(ends.len()) != Ok(MAX_SEGMENTS);
    if !ends.is_empty() {
        store_segments(tx, preparation, &ends, split.then_some(last)).await?;
    }
    let has_changed = !ends.is_empty() || !is_begun;
    Ok(Done { has_changed, is_last: is_last || !has_changed })
}

impl Place {
    /// Before all entries.
    const FIRST: Self = Self { created_at: ALL_DAYS.and_time(NaiveTime::MIN).and_utc(), id: Uuid::nil() };

    /// The last one that gets into a segment.
    fn settled(now: DateTime<Utc>) -> Self {
        Self { created_at: now - SETTLED, id: Uuid::max() }
    }
}

/// Whether an upgrade that began these tables has surely ended, or there was nothing to upgrade: then all migrations were
/// applied together.
async fn are_all_programs_of_this_release(tx: &mut Tx<'_>) -> Result<bool, Error> {
    let sql = "select coalesce(bool_or(installed_on < now() - interval '1 hour'
                or installed_on < (select min(installed_on) from _sqlx_migrations) + interval '1 minute'), false)
         from _sqlx_migrations where version = 80";
    Ok(sqlx::query_scalar(sql).fetch_one(tx.db()).await?)
}

async fn lock(tx: &mut Tx<'_>, Preparation { list, .. }: &Preparation) -> Result<(), Error> {
    let account = tx.account();
    let slots: Vec<i16> = (0..SLOTS).map_while(|slot| i16::try_from(slot).ok()).collect();
    sqlx::query(
        "insert into total (account_id, list, bucket, slot, entries)
         select $1, $2, $3, slot, 0 from unnest($4::smallint[]) as slots (slot) order by slot
         on conflict (account_id, list, bucket, slot) do nothing",
    )
    .bind(account)
    .bind(list)
    .bind(ALL_DAYS)
    .bind(&slots)
    .execute(tx.db())
    .await?;
    sqlx::query(
        "select slot from total where account_id = $1 and list = $2 and bucket = $3 order by slot for update",
    )
    .bind(account)
    .bind(list)
    .bind(ALL_DAYS)
    .execute(tx.db())
    .await?;
    Ok(())
}

async fn is_prepared(tx: &mut Tx<'_>, Preparation { list, .. }: &Preparation) -> Result<bool, Error> {
    let account = tx.account();
    let sql = "select exists (select from prepared_list prepared where account_id = $1 and list = $2 and not exists (
                  select from audit where audit.account_id = $1 and audit.id > prepared.seen))";
    Ok(sqlx::query_scalar(sql).bind(account).bind(list).fetch_one(tx.db()).await?)
}

/// Begins without segments, and with the right counter. `false` if a program of the release before is writing.
async fn begin(tx: &mut Tx<'_>, preparation: &Preparation) -> Result<bool, Error> {
    let (account, list, seen) = (tx.account(), &preparation.list, first_id(tx.now() - LONGEST_WRITE));
    let sql = "select exists (select from audit where account_id = $1 and id > $2)";
    if sqlx::query_scalar(sql).bind(account).bind(seen).fetch_one(tx.db()).await? {
        return Ok(false);
    }
    let sql = "delete from list_segment where account_id = $1 and list = $2";
    sqlx::query(sql).bind(account).bind(list).execute(tx.db()).await?;
    if preparation.is_to_be_counted {
        count(tx, preparation).await?;
    }
    raise_epoch(tx, list).await?;
    sqlx::query(
        "insert into prepared_list (account_id, list, seen) values ($1, $2, $3)
         on conflict (account_id, list) do update set seen = excluded.seen",
    )
    .bind(account)
    .bind(list)
    .bind(seen)
    .execute(tx.db())
    .await?;
    Ok(true)
}

async fn count(tx: &mut Tx<'_>, preparation: &Preparation) -> Result<(), Error> {
    let (account, Preparation { list, table, .. }) = (tx.account(), preparation);
    let (conditions, values) = preparation.conditions();
    let sql = format!("select count(*) from {table} where {conditions}");
    let counted = fetch(tx, sql, values).await?;
    let entries: i64 = counted.first().map_or(Ok(0), |row| row.try_get(0))?;
    sqlx::query(
        "update total set entries = case slot when 0 then $4::bigint else 0 end
         where account_id = $1 and list = $2 and bucket = $3",
    )
    .bind(account)
    .bind(list)
    .bind(ALL_DAYS)
    .bind(entries)
    .execute(tx.db())
    .await?;
    Ok(())
}

async fn raise_epoch(tx: &mut Tx<'_>, list: &str) -> Result<(), Error> {
    let account = tx.account();
    let sql = "update total set epoch = epoch + 1 where account_id = $1 and list = $2 and bucket = $3";
    sqlx::query(sql).bind(account).bind(list).bind(ALL_DAYS).execute(tx.db()).await?;
    Ok(())
}

/// A segment that many entries were added to, and the end of the one before.
struct Long {
    after: Place,
    last: Place,
}

async fn find_long_segment(
    tx: &mut Tx<'_>,
    Preparation { list, .. }: &Preparation,
) -> Result<Option<Long>, Error> {
    let account = tx.account();
    let sql = "select last_created_at as created_at, last_id as id from list_segment
               where account_id = $1 and list = $2 and level = 0 and entries > $3 order by last_created_at, last_id limit 1";
    let long: Option<Place> =
        sqlx::query_as(sql).bind(account).bind(list).bind(MAX_SKIPPED).fetch_optional(tx.db()).await?;
    let Some(last) = long else { return Ok(None) };
    let sql = "select last_created_at as created_at, last_id as id from list_segment
               where account_id = $1 and list = $2 and level = 0
                  and (last_created_at, last_id) < ($3::timestamptz, $4::uuid)
               order by last_created_at desc, last_id desc limit 1";
    let before = sqlx::query_as(sql).bind(account).bind(list).bind(last.created_at).bind(last.id);
    let after = before.fetch_optional(tx.db()).await?.unwrap_or(Place::FIRST);
    Ok(Some(Long { after, last }))
}

/// Where the last segment ends.
async fn find_end(tx: &mut Tx<'_>, Preparation { list, .. }: &Preparation) -> Result<Place, Error> {
    let account = tx.account();
    let sql = "select last_created_at as created_at, last_id as id from list_segment
               where account_id = $1 and list = $2 and level = 0
               order by last_created_at desc, last_id desc limit 1";
    let last = sqlx::query_as(sql).bind(account).bind(list).fetch_optional(tx.db()).await?;
    Ok(last.unwrap_or(Place::FIRST))
}

/// The last entries of new segments, after the first place and before the last one.
async fn list_ends(
    tx: &mut Tx<'_>,
    preparation: &Preparation,
    first: Place,
    last: Place,
) -> Result<Vec<Place>, Error> {
    let table = preparation.table;
    let (conditions, mut values) = preparation.conditions();
    let bound = values.len();
    for Place { created_at, id } in [first, last] {
        values.add(created_at).and_then(|()| values.add(id)).map_err(sqlx::Error::Encode)?;
    }
    let place = |number: usize| format!("(${}, ${})", bound + number, bound + number + 1);
    let sql = format!(
        "select created_at, id from (
            select created_at, id, row_number() over (order by created_at, id) as number from {table}
            where {conditions} and (created_at, id) > {} and (created_at, id) < {}
            order by created_at, id limit {}
         ) entries where number % {SEGMENT} = 0 order by created_at, id",
        place(1),
        place(3),
        MAX_SEGMENTS * SEGMENT,
    );
    let ends = fetch(tx, sql, values).await?;
    Ok(ends.iter().map(Place::from_row).collect::<Result<_, _>>()?)
}

/// Reads the list's table.
async fn fetch(tx: &mut Tx<'_>, sql: String, values: PgArguments) -> Result<Vec<PgRow>, Error> {
    Ok(sqlx::query_with(AssertSqlSafe(sql), values).fetch_all(tx.db()).await?)
}

/// Stores full segments with these ends. `split` is the end of the segment that their entries were in. Empty segments go.
async fn store_segments(
    tx: &mut Tx<'_>,
    Preparation { list, .. }: &Preparation,
    ends: &[Place],
    split: Option<Place>,
) -> Result<(), Error> {
    let account = tx.account();
    let (times, ids): (Vec<DateTime<Utc>>, Vec<Uuid>) =
        ends.iter().map(|end| (end.created_at, end.id)).unzip();
    sqlx::query(
        "insert into list_segment (account_id, list, level, last_created_at, last_id, entries)
         select $1, $2, 0, created_at, id, $5 from unnest($3::timestamptz[], $4::uuid[]) as ends (created_at, id)",
    )
    .bind(account)
    .bind(list)
    .bind(&times)
    .bind(&ids)
    .bind(SEGMENT)
    .execute(tx.db())
    .await?;
    if let Some(split) = split {
        let moved = i64::try_from(ends.len()).unwrap_or(i64::MAX).saturating_mul(SEGMENT);
        sqlx::query(
            "update list_segment set entries = entries - $5
             where account_id = $1 and list = $2 and level = 0 and last_created_at = $3 and last_id = $4",
        )
        .bind(account)
        .bind(list)
        .bind(split.created_at)
        .bind(split.id)
        .bind(moved)
        .execute(tx.db())
        .await?;
    }
    store_groups(tx, list).await?;
    raise_epoch(tx, list).await
}

/// Removes empty segments, and makes those of level 1 anew.
async fn store_groups(tx: &mut Tx<'_>, list: &str) -> Result<(), Error> {
    let account = tx.account();
    let sql = "delete from list_segment where account_id = $1 and list = $2 and (level = 1 or entries = 0)";
    sqlx::query(sql).bind(account).bind(list).execute(tx.db()).await?;
    sqlx::query(
        "insert into list_segment (account_id, list, level, last_created_at, last_id, entries)
         select $1, $2, 1, last_created_at, last_id, through - lag(through, 1, 0::bigint) over (order by number)
         from (
            select last_created_at, last_id, row_number() over earlier as number,
                (sum(entries) over earlier)::bigint as through
            from list_segment where account_id = $1 and list = $2 and level = 0
            window earlier as (order by last_created_at, last_id)
         ) segments where number % $3 = 0",
    )
    .bind(account)
    .bind(list)
    .bind(GROUP)
    .execute(tx.db())
    .await?;
    Ok(())
}

impl Preparation {
    /// The condition of the list's rows.
    fn conditions(&self) -> (String, PgArguments) {
        let mut values = PgArguments::default();
        // A value that cannot be encoded is not added; the statement then fails, because a placeholder has no value.
        let _ = values.add(self.account);
        let mut conditions = "account_id = $1".to_owned();
        for restriction in &self.definition {
            restriction.write(&mut conditions, &mut values);
        }
        (conditions, values)
    }
}
