//! The SQL of leases on partitions: which process owns a partition, and the fence against writes of a former owner. Every
//! statement covers all workers of a process.
//!
//! A lease is valid as long as its owner's row in `replica` is: a renewal writes one row for each worker, however many
//! partitions it holds, and does not wait for jobs, which lock the rows of their leases.
//!
//! The current time is passed in, so that all processes of a service use the same kind of clock and a test can move it.

use chassis_data::lease::column;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

/// A worker's name, a partition and its fence.
pub(super) type LeaseRow = (String, i16, i64);

/// Partitions of workers, as parameters of a statement.
#[derive(Default)]
pub(super) struct Partitions {
    workers: Vec<String>,
    partitions: Vec<i16>,
}

impl Partitions {
    pub(super) fn add(&mut self, worker: &str, partitions: impl IntoIterator<Item = u16>) {
        for partition in partitions {
            self.workers.push(worker.to_owned());
            self.partitions.push(column(partition));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }
}

/// What another process holds, or that a process is there: then without a partition.
#[derive(chassis_derive::FromRow)]
pub(super) struct Seen {
    pub worker: String,
    pub owner: Uuid,
    pub partition: Option<i16>,
    pub until: DateTime<Utc>,
}

/// Renews the owner's leases of its workers, and returns those that it still has. `promise` is what programs of the release
/// before go by, which know only the row of a lease; it is renewed when it ends before `before`, except that of a lease
/// that a job has locked.
pub(super) async fn renew(
    connection: &mut PgConnection,
    owner: Uuid,
    workers: &[String],
    until: DateTime<Utc>,
    (promise, before): (DateTime<Utc>, DateTime<Utc>),
) -> Result<Vec<LeaseRow>, sqlx::Error> {
    sqlx::query_as(
        "with present as (
            insert into replica (worker, owner, until)
            select worker, $1::uuid, $2::timestamptz from unnest($3::text[]) as mine (worker)
            on conflict (worker, owner) do update set until = excluded.until
         ), unlocked as (
            select worker, partition from lease where owner = $1 and until < $5 for no key update skip locked
         ), promised as (
            update lease set until = $4
            where owner = $1 and (worker, partition) in (select worker, partition from unlocked)
         )
         select worker, partition, fence from lease where owner = $1",
    )
    .bind(owner)
    .bind(until)
    .bind(workers)
    .bind(promise)
    .bind(before)
    .fetch_all(connection)
    .await
}

/// The leases of other owners, and all live replicas. One statement: an owner registers as a replica before it leases,
/// so every owner found here is counted.
pub(super) async fn list(
    connection: &mut PgConnection,
    owner: Uuid,
    now: DateTime<Utc>,
) -> Result<Vec<Seen>, sqlx::Error> {
    sqlx::query_as(
        "select worker, owner, partition, replica.until from replica join lease using (worker, owner)
         where owner <> $1 and replica.until > $2
         union all
         select worker, owner, null::smallint, until from replica where until > $2",
    )
    .bind(owner)
    .bind(now)
    .fetch_all(connection)
    .await
}

/// Takes the wanted partitions that are free. The new fence rejects the writes of jobs that the former owner may still
/// run; a partition that such a job locks is left for the next time.
pub(super) async fn take(
    connection: &mut PgConnection,
    owner: Uuid,
    wanted: &Partitions,
    promise: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Vec<LeaseRow>, sqlx::Error> {
    // All replicas lock the rows in the same order, so that they cannot deadlock.
    sqlx::query_as(
        "with wanted as (
            select worker, partition from unnest($3::text[], $4::smallint[]) as wanted (worker, partition)
         ), free as (
            select lease.worker, lease.partition from lease
            where (lease.worker, lease.partition) in (select worker, partition from wanted)
                and not exists (select from replica where replica.worker = lease.worker
                    and replica.owner = lease.owner and replica.until > $5)
            order by lease.worker, lease.partition
            for no key update of lease skip locked
         ), taken as (
            update lease set owner = $1, until = $2, fence = fence + 1
            where (worker, partition) in (select worker, partition from free)
            returning worker, partition, fence
         ), created as (
            insert into lease (worker, partition, owner, until, fence)
            select worker, partition, $1::uuid, $2::timestamptz, 1 from wanted
            where not exists (
                select from lease where lease.worker = wanted.worker and lease.partition = wanted.partition)
            order by worker, partition
            on conflict (worker, partition) do nothing
            returning worker, partition, fence
         )
         select * from taken union all select * from created",
    )
    .bind(owner)
    .bind(promise)
    .bind(&wanted.workers)
    .bind(&wanted.partitions)
    .bind(now)
    .fetch_all(connection)
    .await
}

pub(super) async fn give_back(
    connection: &mut PgConnection,
    owner: Uuid,
    excess: &Partitions,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "update lease set owner = $4, until = $5
         where owner = $1 and (worker, partition) in (select * from unnest($2::text[], $3::smallint[]))",
    )
    .bind(owner)
    .bind(&excess.workers)
    .bind(&excess.partitions)
    .bind(Uuid::nil())
    .bind(now)
    .execute(connection)
    .await
    .map(drop)
}

/// Gives all partitions of some workers back, so that another process can take them immediately.
pub(super) async fn release(
    connection: &mut PgConnection,
    owner: Uuid,
    workers: &[String],
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "with absent as (delete from replica where owner = $1 and worker = any($2::text[]))
         update lease set owner = $3, until = $4 where owner = $1 and worker = any($2::text[])",
    )
    .bind(owner)
    .bind(workers)
    .bind(Uuid::nil())
    .bind(now)
    .execute(connection)
    .await
    .map(drop)
}

/// Deletes replicas that expired before `before`.
pub(super) async fn forget_replicas(
    connection: &mut PgConnection,
    before: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query("delete from replica where until < $1").bind(before).execute(connection).await.map(drop)
}
