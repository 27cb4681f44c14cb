//! The SQL of leases on partitions: which process owns a partition, until when, and the fence against writes of a former
//! owner. Every statement covers all workers of a process.
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

    pub(super) fn contains(&self, worker: &str, partition: u16) -> bool {
        let mut all = self.workers.iter().zip(&self.partitions);
        all.any(|(other, of_other)| other == worker && *of_other == column(partition))
    }
}

/// What another process holds, or that a process is there: then without a partition.
#[derive(sqlx::FromRow)]
pub(super) struct Seen {
    pub worker: String,
    pub owner: Uuid,
    pub partition: Option<i16>,
    pub until: DateTime<Utc>,
}

/// Registers the owner as a replica of its workers and extends the leases that it still has. A transaction of a job
/// locks its lease, so leases that are `busy` are left out while they are locked: one job must not delay the others.
pub(super) async fn extend(
    connection: &mut PgConnection,
    owner: Uuid,
    workers: &[String],
    busy: &Partitions,
    until: DateTime<Utc>,
) -> Result<Vec<LeaseRow>, sqlx::Error> {
    sqlx::query_as(
        "with present as (
            insert into replica (worker, owner, until)
            select worker, $1::uuid, $2::timestamptz from unnest($3::text[]) as mine (worker)
            on conflict (worker, owner) do update set until = excluded.until
         ), busy as (
            select worker, partition from unnest($4::text[], $5::smallint[]) as busy (worker, partition)
         ), unlocked as (
            select lease.worker, lease.partition from lease
            where lease.owner = $1 and (lease.worker, lease.partition) in (select worker, partition from busy)
            for no key update skip locked
         )
         update lease set until = $2
         where owner = $1 and ((worker, partition) not in (select worker, partition from busy)
            or (worker, partition) in (select worker, partition from unlocked))
         returning worker, partition, fence",
    )
    .bind(owner)
    .bind(until)
    .bind(workers)
    .bind(&busy.workers)
    .bind(&busy.partitions)
    .fetch_all(connection)
    .await
}

/// Extends some leases and waits for the jobs that lock them. Returns those that the owner still has.
pub(super) async fn extend_locked(
    connection: &mut PgConnection,
    owner: Uuid,
    late: &Partitions,
    until: DateTime<Utc>,
) -> Result<Vec<LeaseRow>, sqlx::Error> {
    sqlx::query_as(
        "update lease set until = $2
         where owner = $1 and (worker, partition) in (select * from unnest($3::text[], $4::smallint[]))
         returning worker, partition, fence",
    )
    .bind(owner)
    .bind(until)
    .bind(&late.workers)
    .bind(&late.partitions)
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
        "select worker, owner, partition, until from lease where owner <> $1 and until > $2
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
    until: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Vec<LeaseRow>, sqlx::Error> {
    // All replicas lock the rows in the same order, so that they cannot deadlock.
    sqlx::query_as(
        "with wanted as (
            select worker, partition from unnest($3::text[], $4::smallint[]) as wanted (worker, partition)
         ), free as (
            select lease.worker, lease.partition from lease
            where (lease.worker, lease.partition) in (select worker, partition from wanted) and lease.until <= $5
            order by lease.worker, lease.partition
            for no key update skip locked
         )
         insert into lease (worker, partition, owner, until, fence)
         select worker, partition, $1::uuid, $2::timestamptz, 1 from wanted
         where (worker, partition) in (select worker, partition from free) or not exists (
            select from lease where lease.worker = wanted.worker and lease.partition = wanted.partition)
         order by worker, partition
         on conflict (worker, partition) do update
            set owner = excluded.owner, until = excluded.until, fence = lease.fence + 1
            where lease.until <= $5
         returning worker, partition, fence",
    )
    .bind(owner)
    .bind(until)
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
