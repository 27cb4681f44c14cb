//! Keeps the leases of all workers of a process, in one loop: few statements for all of them, however many there are.
//!
//! Each round renews what is held, then gives back what exceeds the fair share, or takes free partitions up to it. A
//! round that fails halfway is repaired by the next, which reads all leases of this owner.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chassis_base::Error;
use chassis_base::error::chain;
use chassis_data::Db;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

use super::board::Boards;
use super::holding::Leases;
use super::lease::{self, LeaseRow, Partitions, Seen};
use super::share::{Other, View};
use super::stop::{Stop, in_time, stopped};
use super::timing::Timing;
use super::wake::MAX_WORKERS;
use crate::interval::every;

/// How soon to look again while partitions are to be taken or given back. Real time, as for polls.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// How many lease lengths the row of a lease promises to the release before, and how many may be left when it is renewed:
/// every five minutes with the default length. Only such a program waits that long to take over.
const PROMISE: (i32, i32) = (40, 20);
/// Replicas are deleted this many lease lengths after they expire, so that one that renews late keeps its row.
const REPLICA_RETENTION: i32 = 100;

pub(super) struct Keeper {
    db: Db,
    boards: Arc<Boards>,
    workers: Vec<String>,
    owner: Uuid,
    length: TimeDelta,
    poll: Duration,
    /// The workers whose last job has ended, after the stop.
    drained: mpsc::UnboundedReceiver<usize>,
    renewed_at: Option<DateTime<Utc>>,
    renew_at: DateTime<Utc>,
    look_again_at: Option<Instant>,
    forget_at: DateTime<Utc>,
    /// The live replicas of the last round.
    replicas: BTreeSet<Uuid>,
}

impl Keeper {
    pub(super) fn new(
        db: Db,
        boards: Arc<Boards>,
        owner: Uuid,
        timing: Timing,
        drained: mpsc::UnboundedReceiver<usize>,
    ) -> Self {
        Self {
            db,
            workers: boards.all.iter().map(|board| board.name.to_string()).collect(),
            boards,
            owner,
            length: timing.lease,
            poll: timing.poll,
            drained,
            renewed_at: None,
            renew_at: DateTime::UNIX_EPOCH,
            look_again_at: None,
            forget_at: DateTime::UNIX_EPOCH,
            replicas: BTreeSet::new(),
        }
    }

    pub(super) async fn run(mut self, mut stop: Stop) {
        let mut ticker = every(self.poll);
        loop {
            tokio::select! {
                () = stopped(&mut stop) => break,
                _ = ticker.tick() => self.renew_if_due().await,
            }
        }
        // Each worker's leases go when its own jobs have ended: others may start on these accounts immediately.
        let mut drained = Vec::new();
        while self.drained.recv_many(&mut drained, MAX_WORKERS).await > 0 {
            self.release(&drained).await;
            drained.clear();
        }
    }

    async fn renew_if_due(&mut self) {
        let now = self.db.clock().now();
        let looks_again = self.look_again_at.is_some_and(|at| Instant::now() >= at);
        if self.workers.is_empty() || !(now >= self.renew_at || looks_again) {
            return;
        }
        if let Err(error) = in_time(Box::pin(self.renew(now))).await {
            tracing::warn!(error = chain(&error), "leases could not be renewed");
        }
        let age = self.renewed_at.map_or(TimeDelta::zero(), |renewed| now - renewed).as_seconds_f64();
        for board in &self.boards.all {
            metrics::gauge!("worker_lease_age_seconds", "worker" => board.name.to_string()).set(age);
            metrics::gauge!("worker_leases", "worker" => board.name.to_string()).set(board.count());
        }
    }

    async fn renew(&mut self, now: DateTime<Utc>) -> Result<(), Error> {
        let mut connection = self.db.acquire().await?;
        let is_late = self.renewed_at.is_some_and(|renewed| now >= renewed + self.length);
        self.extend(&mut connection, now).await?;
        let views = self.list(&mut connection, now).await?;
        let is_settled = self.settle(&mut connection, now, &views).await?;
        self.forget_replicas(&mut connection, now).await?;
        self.renewed_at = Some(now);
        // Renews when the first lease of another owner expires, to take over from a dead owner promptly.
        let expiry = views.iter().filter_map(View::first_expiry).min();
        self.renew_at = expiry.unwrap_or(DateTime::<Utc>::MAX_UTC).min(now + self.length / 3);
        // After the leases had expired, another process may have been about to take them.
        let soon = !is_settled || is_late;
        self.look_again_at = soon.then(|| Instant::now() + RETRY_INTERVAL);
        connection.done();
        Ok(())
    }

    /// Renews the leases that this owner still has, and drops those that were taken over.
    async fn extend(&self, connection: &mut PgConnection, now: DateTime<Utc>) -> Result<(), Error> {
        let until = now + self.length;
        let promise = (self.promise(now), now + self.length * PROMISE.1);
        let rows = lease::renew(connection, self.owner, &self.workers, until, promise).await?;
        for (board, leases) in self.boards.all.iter().zip(self.by_worker(rows)) {
            board.hold(leases, until);
        }
        Ok(())
    }

    fn promise(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        now + self.length * PROMISE.0
    }

    /// What other replicas have, for each worker.
    async fn list(&mut self, connection: &mut PgConnection, now: DateTime<Utc>) -> Result<Vec<View>, Error> {
        let mut views: BTreeMap<&str, View> = BTreeMap::new();
        let seen = lease::list(connection, self.owner, now).await?;
        for Seen { worker, owner, partition, until } in &seen {
            let view = views.entry(worker.as_str()).or_default();
            match partition {
                Some(partition) => {
                    let partition = u16::try_from(*partition).ok();
                    view.others.extend(
                        partition.map(|partition| (partition, Other { owner: *owner, until: *until })),
                    );
                }
                None => view.replicas += 1,
            }
        }
        let replicas: BTreeSet<Uuid> =
            seen.iter().filter(|seen| seen.partition.is_none()).map(|seen| seen.owner).collect();
        // The last wake-ups of a replica that is gone may not have been posted.
        if !self.replicas.is_subset(&replicas) {
            self.boards.request_sweeps();
        }
        self.boards.set_replicas(replicas.len());
        self.replicas = replicas;
        let view = |worker: &String| views.remove(worker.as_str()).unwrap_or_default();
        Ok(self.workers.iter().map(view).collect())
    }

    /// Gives back what exceeds the fair share, or takes up to it. Returns whether nothing more is to be taken or given
    /// back soon.
    async fn settle(
        &self,
        connection: &mut PgConnection,
        now: DateTime<Utc>,
        views: &[View],
    ) -> Result<bool, Error> {
        let (mut excess, mut wanted) = (Partitions::default(), Partitions::default());
        for (board, view) in self.boards.all.iter().zip(views) {
            let leases = board.leases();
            excess.add(&board.name, board.give_up_idle(leases.len().saturating_sub(view.share())));
            wanted.add(&board.name, view.wanted(&leases, self.owner));
        }
        if !excess.is_empty() {
            lease::give_back(connection, self.owner, &excess, now).await?;
        }
        if !wanted.is_empty() {
            let taken = lease::take(connection, self.owner, &wanted, self.promise(now), now).await?;
            for (board, taken) in self.boards.all.iter().zip(self.by_worker(taken)) {
                let mut leases = board.leases();
                leases.extend(taken);
                board.hold(leases, now + self.length);
            }
        }
        let mut is_settled = true;
        for (board, view) in self.boards.all.iter().zip(views) {
            let held = board.leases().len();
            let is_excessive = held > view.share();
            board.set_excessive(is_excessive);
            is_settled &= !is_excessive && !view.awaits_more(held);
        }
        Ok(is_settled)
    }

    /// Not in every round: rows of dead replicas do no harm.
    async fn forget_replicas(
        &mut self,
        connection: &mut PgConnection,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        if now >= self.forget_at {
            lease::forget_replicas(connection, now - self.length * REPLICA_RETENTION).await?;
            self.forget_at = now + self.length * REPLICA_RETENTION;
        }
        Ok(())
    }

    async fn release(&self, drained: &[usize]) {
        let workers: Vec<String> =
            drained.iter().filter_map(|number| self.workers.get(*number).cloned()).collect();
        let now = self.db.clock().now();
        let released = self.db.autocommit(async |connection| {
            Ok::<_, Error>(lease::release(connection, self.owner, &workers, now).await?)
        });
        if let Err(error) = in_time(released).await {
            tracing::warn!(workers = workers.join(" "), error = chain(&error), "leases were not released");
        }
    }

    /// The leases of each worker, in the order of the workers.
    fn by_worker(&self, rows: Vec<LeaseRow>) -> Vec<Leases> {
        let mut leases: BTreeMap<String, Leases> = BTreeMap::new();
        for (worker, partition, fence) in rows {
            if let Ok(partition) = u16::try_from(partition) {
                leases.entry(worker).or_default().insert(partition, fence);
            }
        }
        self.workers.iter().map(|worker| leases.remove(worker).unwrap_or_default()).collect()
    }
}
