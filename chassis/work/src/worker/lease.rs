//! Leases on partitions: which process owns a partition, until when, and the fence against writes of a former owner.
//!
//! The current time is passed in, so that all processes of a service use the same kind of clock and a test can move it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chassis_base::account::PARTITIONS;
use chassis_base::{AccountId, Error};
use chassis_data::lease::{Lease, column};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use tokio::time::Instant;
use uuid::Uuid;

/// How soon to renew again while partitions are to be taken or given back. Real time, as for polls.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// A lease of another process.
struct Held {
    owner: Uuid,
    until: DateTime<Utc>,
}

/// The leases that one worker of this process holds.
pub(super) struct Leases {
    worker: Arc<str>,
    owner: Uuid,
    length: TimeDelta,
    /// The fence of each held partition.
    held: BTreeMap<u16, i64>,
    renewed_at: Option<DateTime<Utc>>,
    renew_at: DateTime<Utc>,
    look_again_at: Option<Instant>,
    /// How many partitions exceed the fair share, because jobs are running in them.
    excess: usize,
    replicas: i64,
    lost_replica: bool,
}

impl Leases {
    pub(super) fn new(worker: Arc<str>, owner: Uuid, length: TimeDelta) -> Self {
        let renew_at = DateTime::UNIX_EPOCH;
        let held = BTreeMap::new();
        Self {
            worker,
            owner,
            length,
            held,
            renewed_at: None,
            renew_at,
            look_again_at: None,
            excess: 0,
            replicas: 1,
            lost_replica: false,
        }
    }

    pub(super) fn of(&self, account: AccountId) -> Option<Lease> {
        let partition = account.partition();
        let fence = *self.held.get(&partition)?;
        Some(Lease::new(Arc::clone(&self.worker), partition, self.owner, fence))
    }

    pub(super) fn covers(&self, account: AccountId) -> bool {
        self.held.contains_key(&account.partition())
    }

    /// Whether this replica holds the first partition. Only one does, and it does the work that is needed only once.
    pub(super) fn are_first(&self) -> bool {
        self.held.contains_key(&0)
    }

    /// The held partitions and their fences.
    pub(super) fn held(&self) -> &BTreeMap<u16, i64> {
        &self.held
    }

    /// Whether the last renewal found fewer live replicas than the one before.
    pub(super) fn lost_replica(&self) -> bool {
        self.lost_replica
    }

    pub(super) fn count(&self) -> usize {
        self.held.len()
    }

    /// Whether more than the fair share is held, so that another replica waits for partitions.
    pub(super) fn are_excessive(&self) -> bool {
        self.excess > 0
    }

    pub(super) fn renewed_at(&self) -> Option<DateTime<Utc>> {
        self.renewed_at
    }

    pub(super) fn is_renewal_due(&self, now: DateTime<Utc>) -> bool {
        now >= self.renew_at || self.look_again_at.is_some_and(|at| Instant::now() >= at)
    }

    /// Renews the held leases, then gives back what exceeds the fair share, or takes free partitions up to it.
    /// Partitions that are `busy` are not given back.
    pub(super) async fn renew(
        &mut self,
        connection: &mut PgConnection,
        now: DateTime<Utc>,
        busy: &BTreeSet<u16>,
    ) -> Result<(), Error> {
        self.extend(connection, now).await?;
        // In this order: an owner registers as a replica before it leases, so every owner found here is counted.
        let others = self.held_by_others(connection, now).await?;
        let replicas = self.live_replicas(connection, now).await?;
        let share = fair_share(replicas);
        if self.held.len() > share {
            let idle = self.held.keys().copied().filter(|partition| !busy.contains(partition));
            let excess = idle.take(self.held.len() - share).collect::<Vec<_>>();
            self.give_back(connection, now, &excess).await?;
        } else if self.held.len() < share {
            self.take(connection, now, share - self.held.len(), &others).await?;
        }
        self.renewed_at = Some(now);
        self.lost_replica = replicas < self.replicas;
        self.replicas = replicas;
        self.excess = self.held.len().saturating_sub(share);
        // Renews when the first lease of another owner expires, to take over from a dead owner promptly.
        let expiring = others.values().map(|held| held.until).min().unwrap_or(DateTime::<Utc>::MAX_UTC);
        self.renew_at = expiring.min(now + self.length / 3);
        let soon = self.excess > 0 || self.awaits_more(share, &others);
        self.look_again_at = soon.then(|| Instant::now() + RETRY_INTERVAL);
        Ok(())
    }

    /// Whether partitions can be taken soon: they are free, or an owner of more than its share is about to give them
    /// back. No process works on a free partition, so this does not wait for the next regular renewal.
    fn awaits_more(&self, share: usize, others: &BTreeMap<u16, Held>) -> bool {
        let mut shares: BTreeMap<Uuid, usize> = BTreeMap::new();
        for held in others.values() {
            *shares.entry(held.owner).or_default() += 1;
        }
        let given = self.held.len() + others.len() >= usize::from(PARTITIONS);
        self.held.len() < share && (!given || shares.values().any(|others| *others > share))
    }

    /// Renews the leases that this owner still has, and drops those that were taken over.
    async fn extend(&mut self, connection: &mut PgConnection, now: DateTime<Utc>) -> Result<(), Error> {
        let until = now + self.length;
        sqlx::query(
            "insert into replica (worker, owner, until) values ($1, $2, $3)
             on conflict (worker, owner) do update set until = excluded.until",
        )
        .bind(&*self.worker)
        .bind(self.owner)
        .bind(until)
        .execute(&mut *connection)
        .await?;
        let extended: Vec<(i16, i64)> = sqlx::query_as(
            "update lease set until = $3 where worker = $1 and owner = $2 returning partition, fence",
        )
        .bind(&*self.worker)
        .bind(self.owner)
        .bind(until)
        .fetch_all(connection)
        .await?;
        self.held = partitions(extended).collect();
        Ok(())
    }

    async fn live_replicas(&self, connection: &mut PgConnection, now: DateTime<Utc>) -> Result<i64, Error> {
        // Rows are deleted long after they expire, so that a replica which renews late keeps its row.
        sqlx::query("delete from replica where worker = $1 and until < $2")
            .bind(&*self.worker)
            .bind(now - self.length * 100)
            .execute(&mut *connection)
            .await?;
        let live = sqlx::query_scalar("select count(*) from replica where worker = $1 and until > $2")
            .bind(&*self.worker)
            .bind(now)
            .fetch_one(connection)
            .await?;
        Ok(live)
    }

    /// The partitions that other owners hold.
    async fn held_by_others(
        &self,
        connection: &mut PgConnection,
        now: DateTime<Utc>,
    ) -> Result<BTreeMap<u16, Held>, Error> {
        let rows: Vec<(i16, Uuid, DateTime<Utc>)> = sqlx::query_as(
            "select partition, owner, until from lease where worker = $1 and owner <> $2 and until > $3",
        )
        .bind(&*self.worker)
        .bind(self.owner)
        .bind(now)
        .fetch_all(connection)
        .await?;
        let held = rows.into_iter().map(|(partition, owner, until)| (partition, Held { owner, until }));
        Ok(partitions(held).collect())
    }

    async fn take(
        &mut self,
        connection: &mut PgConnection,
        now: DateTime<Utc>,
        count: usize,
        others: &BTreeMap<u16, Held>,
    ) -> Result<(), Error> {
        let free = |partition: &u16| !self.held.contains_key(partition) && !others.contains_key(partition);
        let mut wanted: Vec<u16> = (0..PARTITIONS).filter(free).collect();
        // Each replica starts at another position, so that concurrent replicas try different partitions.
        let start = usize::from(self.owner.as_bytes()[15]) % wanted.len().max(1);
        wanted.rotate_left(start);
        wanted.truncate(count);
        // All replicas lock the rows in the same order, so that they cannot deadlock.
        wanted.sort_unstable();
        // The new fence rejects the writes of jobs that the former owner may still run.
        let taken: Vec<(i16, i64)> = sqlx::query_as(
            "insert into lease (worker, partition, owner, until, fence)
             select $1, partition, $2, $3, 1 from unnest($4::smallint[]) as wanted (partition)
             on conflict (worker, partition) do update
                set owner = excluded.owner, until = excluded.until, fence = lease.fence + 1
                where lease.until <= $5
             returning partition, fence",
        )
        .bind(&*self.worker)
        .bind(self.owner)
        .bind(now + self.length)
        .bind(wanted.into_iter().map(column).collect::<Vec<_>>())
        .bind(now)
        .fetch_all(connection)
        .await?;
        self.held.extend(partitions(taken));
        Ok(())
    }

    async fn give_back(
        &mut self,
        connection: &mut PgConnection,
        now: DateTime<Utc>,
        excess: &[u16],
    ) -> Result<(), Error> {
        sqlx::query(
            "update lease set owner = $4, until = $5 where worker = $1 and owner = $2 and partition = any($3)",
        )
        .bind(&*self.worker)
        .bind(self.owner)
        .bind(excess.iter().copied().map(column).collect::<Vec<_>>())
        .bind(Uuid::nil())
        .bind(now)
        .execute(connection)
        .await?;
        self.held.retain(|partition, _| !excess.contains(partition));
        Ok(())
    }

    /// Gives all partitions back, so that another process can take them immediately.
    pub(super) async fn release(
        &mut self,
        connection: &mut PgConnection,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let all: Vec<u16> = self.held.keys().copied().collect();
        self.give_back(connection, now, &all).await?;
        sqlx::query("delete from replica where worker = $1 and owner = $2")
            .bind(&*self.worker)
            .bind(self.owner)
            .execute(connection)
            .await?;
        Ok(())
    }
}

fn partitions<T>(rows: impl IntoIterator<Item = (i16, T)>) -> impl Iterator<Item = (u16, T)> {
    rows.into_iter().filter_map(|(partition, value)| Some((u16::try_from(partition).ok()?, value)))
}

/// Rounded up, so that no partition stays without an owner.
fn fair_share(replicas: i64) -> usize {
    usize::from(PARTITIONS).div_ceil(usize::try_from(replicas.max(1)).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_all_replicas_cover_all_partitions() {
        for replicas in 1..=200 {
            let share = fair_share(replicas);
            assert!(share >= 1 && share * usize::try_from(replicas).unwrap() >= usize::from(PARTITIONS));
        }
        assert_eq!((fair_share(0), fair_share(2), fair_share(3)), (64, 32, 22));
    }
}
