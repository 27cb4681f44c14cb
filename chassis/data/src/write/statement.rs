//! The statement that finishes a write transaction: log entries, totals and response in one round trip. It has only the
//! parts that the transaction needs, because Postgres prepares every part of a plan before it runs it.

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Postgres};

use crate::log::entries::Entries;
use crate::rows::{Column, Rows, bind, source};
use crate::totals::{Columns, Places};
use crate::withdrawal;

/// The columns of an entry, in the order in which they are bound.
const ENTRY: [Column; 12] = [
    ("id", "uuid"),
    ("kind", "text"),
    ("record_id", "text"),
    ("version", "bigint"),
    ("change", "text"),
    ("message", "text"),
    ("image", "bytea"),
    ("image_hash", "bytea"),
    ("event", "text"),
    ("sequence", "bigint"),
    ("data", "text"),
    ("depth", "integer"),
];
const TOTAL: [Column; 4] =
    [("list", "text"), ("bucket", "date"), ("slot", "smallint"), ("entries", "bigint")];
const PLACE: [Column; 4] =
    [("list", "text"), ("created_at", "timestamptz"), ("id", "uuid"), ("entries", "bigint")];

/// Account, counter and number.
const NUMBER: usize = 3;

/// The parameters that every entry shares: account, time, actor, request, method, and whether it gets a position.
const SHARED_BY_ENTRIES: usize = 6;
const SHARED_BY_TOTALS: usize = 1;

/// Which parts the statement has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// How many parameters the statement has that the operation left to this one.
    pub deferred: Option<usize>,
    /// The deferred statement is an update, and must find its row.
    pub updates: bool,
    /// It refers to records of other services.
    pub guard: bool,
    /// A number is taken from its counter.
    pub number: bool,
    pub entries: Rows,
    pub totals: Rows,
    /// Changes of entries that may be in segments. There are none without totals.
    pub places: Rows,
    pub response: Option<Response>,
}

/// How the response of a call with a key is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Response {
    /// With its key. Affects no row if the key was used.
    First,
    /// With its key. Fails if the key was used, because nothing undoes the rest of the statement otherwise.
    FirstOrFail,
    /// In place of the one that is stored.
    Amended,
}

impl Parts {
    pub(super) fn is_nothing(self) -> bool {
        self.deferred.is_none()
            && !self.guard
            && !self.number
            && self.entries == Rows::None
            && self.totals == Rows::None
            && self.response.is_none()
    }

    /// The parameters are those of the parts that there are, in the order deferred, guard, number, entries, totals, places, response. The
    /// rows that it affects are those of the response. `deferred` is the statement that the operation left to this one.
    pub(super) fn sql(self, deferred: &str) -> String {
        let (mut with, mut bound) = (Vec::new(), 0);
        if let Some(parameters) = self.deferred {
            with.push(deferred_sql(deferred, self.updates));
            bound += parameters;
        }
        if self.guard {
            with.push(withdrawal::guard_sql(bound));
            bound += withdrawal::PARAMETERS;
        }
        if self.number {
            with.push(number_sql(bound));
            bound += NUMBER;
        }
        if self.entries != Rows::None {
            with.push(entries_sql(self.entries, bound, self.updates));
            bound += SHARED_BY_ENTRIES + ENTRY.len();
        }
        if self.totals != Rows::None {
            let account = bound + 1;
            with.push(totals_sql(self.totals, bound, self.places != Rows::None));
            bound += SHARED_BY_TOTALS + self.totals.parameters(TOTAL.len());
            if self.places != Rows::None {
                with.push(segments_sql(self.places, account, bound));
                bound += self.places.parameters(PLACE.len());
            }
        }
        let last = match self.response {
            Some(Response::First) => key_sql(bound, true),
            Some(Response::FirstOrFail) => key_sql(bound, false),
            Some(Response::Amended) => amended_sql(bound),
            None => "select 1".to_owned(),
        };
        if with.is_empty() { last } else { format!("with {} {last}", with.join(", ")) }
    }
}

/// A statement that has several parts, `with a as (…), b as (…) select 1`, has them side by side with those of this one,
/// because Postgres changes nothing in a `with` inside of another.
fn deferred_sql(deferred: &str, updates: bool) -> String {
    match deferred.strip_prefix("with ").and_then(|parts| parts.strip_suffix(" select 1")) {
        Some(parts) => parts.to_owned(),
        None if updates => format!("deferred as ({deferred} returning 1)"),
        None => format!("deferred as ({deferred})"),
    }
}

/// Takes a number, if it is the next one of its counter. If not, the value is null, and the statement fails.
fn number_sql(bound: usize) -> String {
    let [account, counter, number] = numbers::<NUMBER>(bound);
    format!(
        "number as (
            insert into counter (account_id, name, value) values (${account}::uuid, ${counter}::text, ${number}::bigint)
            on conflict (account_id, name) do update
                set value = case when counter.value = excluded.value - 1 then excluded.value end
        )"
    )
}

/// The version of an entry is one more than that of the record's last change. Two transactions that change a record at once
/// without a lock on it get the same version; the unique index makes the second one run again. A change that leaves the
/// record as it was is no change, and has an entry only if it tells an event. If an update finds no row, because the record
/// was deleted since it was read, the version is null, and the statement fails.
fn entries_sql(rows: Rows, bound: usize, updates: bool) -> String {
    let version = "coalesce(entry.version, latest.version + 1, 1)";
    let version = if updates {
        format!("case when exists (select from deferred) then {version} end")
    } else {
        version.to_owned()
    };
    let [account, at, actor, request, method, is_numbered] = numbers(bound);
    let entry = source("entry", &ENTRY, rows, bound + SHARED_BY_ENTRIES);
    format!(
        "entries as (
            insert into log
                (account_id, id, at, actor, request_id, method, kind, record_id, version, change, message, image,
                 image_hash, event, sequence, data, depth)
            select ${account}::uuid, entry.id, ${at}::timestamptz, ${actor}::text, ${request}::text, ${method}::text,
                entry.kind, entry.record_id, {version},
                case when is_change is not true then null when entry.change = 'deleted' then 'deleted'
                    when coalesce(latest.change, 'deleted') = 'deleted' then 'created' else 'updated' end,
                case when is_change then entry.message else '' end, case when is_change then entry.image end,
                case when is_change then entry.image_hash end, event, sequence, data, depth
            from {entry}
            left join lateral (
                select version, change, image_hash from log earlier
                where earlier.account_id = ${account} and earlier.record_id = entry.record_id
                    and earlier.kind = entry.kind and earlier.change is not null
                order by earlier.version desc limit 1) latest on true
            cross join lateral (
                select entry.change is not null
                    and (latest.version is null or latest.image_hash is distinct from entry.image_hash) as is_change
            ) decided
            where is_change or event is not null
            returning id
        ), unnumbered as (
            insert into pending (account_id, id, at) select ${account}::uuid, id, ${at}::timestamptz
            from entries where ${is_numbered}::boolean
        )"
    )
}

/// Sorted, so that all transactions lock counter rows in the same order and do not deadlock.
///
/// `is_checked`: entries may be in segments, which the next part looks for. If the segments get other ends meanwhile, it does
/// not see them, and the counter has another epoch than this statement has read. Then the value is null, and the statement
/// fails.
fn totals_sql(rows: Rows, bound: usize, is_checked: bool) -> String {
    let [account] = numbers(bound);
    let total = source("added", &TOTAL, rows, bound + SHARED_BY_TOTALS);
    if !is_checked {
        return format!(
            "totals as (
                insert into total (account_id, list, bucket, slot, entries)
                select ${account}::uuid, list, bucket, slot, entries from {total} order by list, bucket, slot
                on conflict (account_id, list, bucket, slot) do update set entries = total.entries + excluded.entries
            )"
        );
    }
    format!(
        "totals as (
            insert into total (account_id, list, bucket, slot, entries, epoch)
            select ${account}::uuid, added.list, added.bucket, added.slot, added.entries, coalesce(known.epoch, 0)
            from {total}
            left join lateral (
                select epoch from total known
                where known.account_id = ${account} and known.list = added.list and known.bucket = added.bucket
                    and known.slot = added.slot
                limit 1) known on true
            order by added.list, added.bucket, added.slot
            on conflict (account_id, list, bucket, slot) do update
                set entries = case when total.epoch = excluded.epoch then total.entries + excluded.entries end
            returning 1
        )"
    )
}

/// After the totals, because whoever changes the ends of segments locks the totals first. The rows exist, or the totals have
/// failed: as an insert this finds each by its key, where an update could read all segments of the account. The same is meant
/// by `limit 1`.
fn segments_sql(rows: Rows, account: usize, bound: usize) -> String {
    let place = source("place", &PLACE, rows, bound);
    format!(
        "segments as (
            insert into list_segment (account_id, list, level, last_created_at, last_id, entries)
            select ${account}::uuid, place.list, level, found.last_created_at, found.last_id, sum(place.entries)::bigint
            from {place} cross join (values (0::smallint), (1::smallint)) levels (level)
            cross join lateral (
                select last_created_at, last_id from list_segment segment
                where segment.account_id = ${account} and segment.list = place.list and segment.level = levels.level
                    and (segment.last_created_at, segment.last_id) >= (place.created_at, place.id)
                order by segment.last_created_at, segment.last_id limit 1) found
            where (select count(*) from totals) > 0
            group by place.list, level, found.last_created_at, found.last_id
            order by place.list, level, found.last_created_at, found.last_id
            on conflict (account_id, list, level, last_created_at, last_id) do update
                set entries = list_segment.entries + excluded.entries
        )"
    )
}

/// If another transaction has stored the key and is still open, this waits until that one has ended. A rollback or a crash
/// frees the key. An expired one may be taken over.
fn key_sql(bound: usize, takes_over: bool) -> String {
    let [account, response, route, key, fingerprint, at, expired] = numbers(bound);
    let insert = format!(
        "insert into idempotency (account_id, response, route, key, fingerprint, created_at)
         values (${account}, ${response}, ${route}, ${key}, ${fingerprint}, ${at})"
    );
    if !takes_over {
        return insert;
    }
    format!(
        "{insert} on conflict (account_id, route, key) do update
            set fingerprint = excluded.fingerprint, response = excluded.response, created_at = excluded.created_at
            where idempotency.created_at <= ${expired}"
    )
}

fn amended_sql(bound: usize) -> String {
    let [account, response, route, key] = numbers(bound);
    format!(
        "update idempotency set response = ${response}::bytea
         where account_id = ${account}::uuid and route = ${route}::text and key = ${key}::text"
    )
}

/// The numbers of the next parameters.
fn numbers<const N: usize>(bound: usize) -> [usize; N] {
    std::array::from_fn(|place| bound + place + 1)
}

pub(super) type Statement<'q> = Query<'q, Postgres, PgArguments>;

pub(super) fn bind_entries<'q>(mut query: Statement<'q>, entries: &'q Entries, rows: Rows) -> Statement<'q> {
    query = bind(query, &entries.ids, rows);
    query = bind(query, &entries.kinds, rows);
    query = bind(query, &entries.record_ids, rows);
    query = bind(query, &entries.versions, rows);
    query = bind(query, &entries.changes, rows);
    query = bind(query, &entries.messages, rows);
    query = bind(query, &entries.images, rows);
    query = bind(query, &entries.image_hashes, rows);
    query = bind(query, &entries.events, rows);
    query = bind(query, &entries.sequences, rows);
    query = bind(query, &entries.data, rows);
    bind(query, &entries.depths, rows)
}

pub(super) fn bind_totals<'q>(query: Statement<'q>, columns: &'q Columns, rows: Rows) -> Statement<'q> {
    let (lists, buckets, slots, counts) = columns;
    bind(bind(bind(bind(query, lists, rows), buckets, rows), slots, rows), counts, rows)
}

pub(super) fn bind_places<'q>(query: Statement<'q>, places: &'q Places, rows: Rows) -> Statement<'q> {
    if rows == Rows::None {
        return query;
    }
    let (lists, times, ids, counts) = places;
    bind(bind(bind(bind(query, lists, rows), times, rows), ids, rows), counts, rows)
}

/// The statement with these parts, and the parameters of the deferred one; the others are still to be bound.
pub(super) fn prepare<'q>(sql: String, arguments: PgArguments) -> Statement<'q> {
    sqlx::query_with(AssertSqlSafe(sql), arguments)
}

#[cfg(test)]
mod tests {
    use chassis_testing::TestDatabase;
    use sqlx::{Executor, SqlSafeStr};

    use super::*;

    static NONE: sqlx::migrate::Migrator = sqlx::migrate::Migrator::DEFAULT;

    const DEFERRED: [&str; 3] = [
        "delete from counter where account_id = $1",
        "update counter set value = 1 where account_id = $1",
        "with one as (delete from counter where account_id = $1), \
         other as (delete from total where account_id = $1) select 1",
    ];

    #[tokio::test]
    async fn postgres_understands_every_form() {
        let database = TestDatabase::new(&[("bare", &NONE)]).await;
        let mut connection = database.connect().await;
        sqlx::raw_sql("set search_path = bare, public").execute(&mut connection).await.unwrap();
        let all = [Rows::None, Rows::One, Rows::Several];
        let responses = [None, Some(Response::First), Some(Response::FirstOrFail), Some(Response::Amended)];
        let few = [Rows::None, Rows::One, Rows::Few(2), Rows::Several];
        for (entries, totals) in all.into_iter().flat_map(|one| few.map(|other| (one, other))) {
            for (response, number, deferred) in responses.into_iter().flat_map(|it| {
                [(it, false, ""), (it, true, "")].into_iter().chain(DEFERRED.map(|sql| (it, true, sql)))
            }) {
                let (updates, bound) = (deferred.starts_with("update"), (!deferred.is_empty()).then_some(1));
                for (places, guard) in few.into_iter().flat_map(|it| [(it, false), (it, true)]) {
                    let parts =
                        Parts { deferred: bound, updates, guard, number, entries, totals, places, response };
                    let sql = parts.sql(deferred);
                    let prepared = (&mut connection).prepare(AssertSqlSafe(sql).into_sql_str()).await;
                    assert!(prepared.is_ok(), "{parts:?}: {:?}", prepared.err());
                }
            }
        }
    }
}
