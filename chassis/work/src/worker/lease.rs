//! Leases on partitions: who works on which part, until when, and the fence that keeps a late one out.
//!
//! The times of leases are passed in, so that every process of a service judges by the same kind of clock and a test
//! can move it.

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

/// How long one who is to get more partitions waits before it looks for them again. Real time, as for polls.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// A partition of another process.
struct Held {
    owner: Uuid,
    until: DateTime<Utc>,
}

/// What one worker of this process holds.
pub(super) struct Leases {
    worker: Arc<str>,
    owner: Uuid,
    length: TimeDelta,
    /// Partition and fence.
    held: BTreeMap<u16, i64>,
    renewed_at: Option<DateTime<Utc>>,
    renew_at: DateTime<Utc>,
    look_again_at: Option<Instant>,
    /// More than the fair share, because jobs were at work in them.
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

    /// Whether this replica holds the first partition: one does, and does what need be done only once.
    pub(super) fn are_first(&self) -> bool {
        self.held.contains_key(&0)
    }

    /// The partitions and their fences.
    pub(super) fn held(&self) -> &BTreeMap<u16, i64> {
        &self.held
    }

    /// Whether there was one replica more before the last renewal.
    pub(super) fn lost_replica(&self) -> bool {
        self.lost_replica
    }

    /// How many partitions are held.
    pub(super) fn count(&self) -> usize {
        self.held.len()
    }

    /// Whether another replica waits for some of them.
    pub(super) fn are_excessive(&self) -> bool {
        self.excess > 0
    }

    pub(super) fn renewed_at(&self) -> Option<DateTime<Utc>> {
        self.renewed_at
    }

    pub(super) fn is_renewal_due(&self, now: DateTime<Utc>) -> bool {
        now >= self.renew_at || self.look_again_at.is_some_and(|at| Instant::now() >= at)
    }

    /// Shows a sign of life, then gives back what is more than a fair share, or takes what is free up to it.
    /// Partitions that are `busy` are not given back.
    pub(super) async fn renew(
        &mut self,
        connection: &mut PgConnection,
        now: DateTime<Utc>,
        busy: &BTreeSet<u16>,
    ) -> Result<(), Error> {
        self.extend(connection, now).await?;
        // In this order: whoever is seen to hold something is counted too, as it shows its sign of life first.
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
        // An owner that shows no more sign of life is replaced at the moment its lease ends.
        let expiring = others.values().map(|held| held.until).min().unwrap_or(DateTime::<Utc>::MAX_UTC);
        self.renew_at = expiring.min(now + self.length / 3);
        let soon = self.excess > 0 || self.awaits_more(share, &others);
        self.look_again_at = soon.then(|| Instant::now() + RETRY_INTERVAL);
        Ok(())
    }

    /// Whether there is something to take soon: free already, or about to be given back by an owner of more than its
    /// share. Nobody works on it meanwhile, so that is worth a look before the next sign of life is due.
    fn awaits_more(&self, share: usize, others: &BTreeMap<u16, Held>) -> bool {
        let mut shares: BTreeMap<Uuid, usize> = BTreeMap::new();
        for held in others.values() {
            *shares.entry(held.owner).or_default() += 1;
        }
        let given = self.held.len() + others.len() >= usize::from(PARTITIONS);
        self.held.len() < share && (!given || shares.values().any(|others| *others > share))
    }

    /// Renews what is still ours, and so learns what is not.
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
        // Forgotten only much later: a replica whose sign of life comes late is no new one.
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

    /// The partitions of other owners.
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
        // Each replica starts elsewhere, so that two who look at the same time find different ones.
        let start = usize::from(self.owner.as_bytes()[15]) % wanted.len().max(1);
        wanted.rotate_left(start);
        wanted.truncate(count);
        // Locked in one order by everyone.
        wanted.sort_unstable();
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

    /// Gives everything back: another process can go on at once.
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

/// Rounded up: no partition stays without an owner.
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
