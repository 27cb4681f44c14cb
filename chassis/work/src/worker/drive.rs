//! The loop of one worker: renews the leases, waits until an account is due and runs its job.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use chassis_base::error::chain;
use chassis_base::{Account, AccountId, Error};
use chassis_data::db::Db;
use chassis_rpc::scope;
use chrono::TimeDelta;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument;
use uuid::Uuid;

use super::board::{Board, Found};
use super::definition::Worker;
use super::job::{Job, Next};
use super::lease::Leases;
use super::schedule::Schedule;
use super::slot::{Slot, Slots};
use super::stop::{Stop, in_time, stopped};
use super::timing::Timing;
use super::wake::Inbox;
use crate::interval::every;

/// How often due work is counted for the metrics, and up to which number.
const COUNT_INTERVAL: Duration = Duration::from_mins(1);
const MAX_COUNTED: i64 = 10_000;
/// The longest pause of an account whose jobs fail. Real time, as for polls.
const MAX_BACKOFF: TimeDelta = TimeDelta::seconds(30);
/// The longest pause when the whole database was unreachable. The account is not the cause, and work should continue
/// soon after the database is back.
const MAX_OUTAGE_BACKOFF: TimeDelta = TimeDelta::seconds(2);

enum Outcome {
    Ended(Next),
    Failed(Error),
    Panicked,
}

/// What connects the worker to the other loops of the process.
pub(super) struct Assignment {
    pub number: usize,
    pub board: Arc<Board>,
    pub found: mpsc::UnboundedReceiver<Found>,
    pub inbox: Arc<Inbox>,
}

pub(super) struct Driver {
    db: Db,
    worker: Worker,
    assignment: Assignment,
    leases: Leases,
    poll: Duration,
    /// How far ahead accounts are scheduled; sweeps find what is due later.
    horizon: TimeDelta,
    schedule: Schedule,
    /// Accounts that are ready, in the order in which they became ready.
    queue: VecDeque<Arc<Account>>,
    slots: Slots,
    /// The pending acquisition of a slot for the next job.
    next: Option<BoxFuture<'static, Slot>>,
    /// Accounts that are in the queue or have a running job.
    taken: HashMap<AccountId, Arc<Account>>,
    jobs: JoinSet<(AccountId, Outcome)>,
    /// When an account's last job ended, for accounts that have not been examined since.
    ended: HashMap<AccountId, Instant>,
    count_at: Instant,
}

impl Driver {
    pub(super) fn new(db: Db, worker: Worker, owner: Uuid, timing: Timing, assignment: Assignment) -> Self {
        let leases = Leases::new(Arc::clone(&worker.name), owner, timing.lease);
        let horizon = TimeDelta::from_std(assignment.board.sweep_interval * 2).unwrap_or(TimeDelta::MAX);
        Self {
            db,
            poll: timing.poll,
            horizon,
            leases,
            assignment,
            slots: Slots::new(worker.concurrency),
            next: None,
            worker,
            schedule: Schedule::default(),
            queue: VecDeque::new(),
            taken: HashMap::new(),
            jobs: JoinSet::new(),
            ended: HashMap::new(),
            count_at: Instant::now(),
        }
    }

    pub(super) async fn drive(mut self, mut stop: Stop) {
        let mut ticker = every(self.poll);
        loop {
            // The acquisition is kept across iterations, because dropping it would lose the place in the semaphore's
            // queue. While no account is ready, no slot is requested.
            let slots = (!self.queue.is_empty()).then(|| self.slots.clone());
            self.next = slots.map(|slots| self.next.take().unwrap_or_else(|| Box::pin(slots.free())));
            // All branches are cancel safe: state changes only in the handlers.
            tokio::select! {
                () = stopped(&mut stop) => break,
                slot = wait_for_slot(&mut self.next) => {
                    self.next = None;
                    self.begin(slot);
                }
                Some(ended) = self.jobs.join_next() => self.ended(ended),
                Some(found) = self.assignment.found.recv() => self.schedule_account(found),
                _ = ticker.tick() => {
                    self.keep_leases().await;
                    self.count().await;
                    self.enqueue_ready();
                }
            }
        }
        let grace = stop.borrow().unwrap_or_default();
        Box::pin(self.end(grace)).await;
    }

    /// Schedules an account for the time at which it is due.
    fn schedule_account(&mut self, Found { account, asked, at }: Found) {
        // An account that is queued or running is examined again when its job has ended.
        if self.taken.contains_key(&account.id) || !self.leases.covers(account.id) {
            return;
        }
        // The result of a query from before the last job ended may show work that this job has done.
        if self.ended.get(&account.id).is_some_and(|ended| asked < *ended) {
            return;
        }
        self.ended.remove(&account.id);
        let horizon = self.db.clock().now() + self.horizon;
        match at.filter(|at| *at <= horizon) {
            Some(at) => {
                self.schedule.put(account, at);
                self.enqueue_ready();
            }
            None => self.schedule.remove(account.id),
        }
    }

    /// Moves the accounts that are ready into the queue.
    fn enqueue_ready(&mut self) {
        for account in self.schedule.take_ready((self.db.clock().now(), Instant::now())) {
            self.taken.insert(account.id, Arc::clone(&account));
            self.queue.push_back(account);
        }
        metrics::gauge!("worker_backlog_accounts", "worker" => self.worker.name.to_string())
            .set(as_f64(self.queue.len()));
    }

    /// Starts the job of the account that has waited longest.
    fn begin(&mut self, slot: Slot) {
        let Some(account) = self.queue.pop_front() else { return };
        let Some(lease) = self.leases.of(account.id) else {
            self.taken.remove(&account.id);
            return;
        };
        let span = tracing::info_span!("job", worker = &*self.worker.name, account = %account.id);
        let (id, slot) = (account.id, Arc::new(slot));
        let job = Job { db: self.db.clone(), account, lease, slot: Arc::clone(&slot) };
        // `run` is called inside the guard, because creating the future may panic, too.
        let run = Arc::clone(&self.worker.run);
        let guarded = AssertUnwindSafe(async move { run(job).await }).catch_unwind();
        let outcome = async move {
            let outcome = match guarded.await {
                Ok(Ok(next)) => Outcome::Ended(next),
                Ok(Err(error)) => Outcome::Failed(error),
                Err(_) => Outcome::Panicked,
            };
            slot.leave();
            outcome
        };
        self.jobs.spawn(async move { (id, scope::background(id, outcome).await) }.instrument(span));
    }

    fn ended(&mut self, ended: Result<(AccountId, Outcome), tokio::task::JoinError>) {
        // Never an error: panics are caught inside the job, and jobs are only aborted after the loop.
        let Ok((id, outcome)) = ended else { return };
        let Some(account) = self.taken.remove(&id) else { return };
        let (worker, now) = (&*self.worker.name, (self.db.clock().now(), Instant::now()));
        let label = match outcome {
            Outcome::Ended(next) => {
                match next {
                    Next::After(wait) => self.schedule.pause_until(id, now.0 + wait),
                    Next::WhenDue | Next::Now => self.schedule.resume(id),
                }
                self.ended.insert(id, now.1);
                // The account is examined again: wake-ups that arrived while the job ran were ignored.
                self.assignment.inbox.wake(id, 1 << self.assignment.number);
                "ended"
            }
            Outcome::Failed(Error::LeaseLost) => {
                tracing::info!(worker, account = %id, "another process has taken over this account");
                "lost"
            }
            Outcome::Failed(error) => {
                tracing::warn!(worker, account = %id, error = chain(&error), "background work failed");
                let is_outage = error.is_database_unreachable() && !error.is_node_unreachable();
                let most = if is_outage { MAX_OUTAGE_BACKOFF } else { MAX_BACKOFF };
                self.schedule.pause_failing(account, most, now);
                "failed"
            }
            Outcome::Panicked => {
                tracing::error!(worker, account = %id, "background work panicked");
                self.schedule.pause_failing(account, MAX_BACKOFF, now);
                "panicked"
            }
        };
        metrics::counter!("worker_jobs_total", "worker" => worker.to_owned(), "outcome" => label)
            .increment(1);
    }

    async fn keep_leases(&mut self) {
        let now = self.db.clock().now();
        let worker = Arc::clone(&self.worker.name);
        if self.leases.is_renewal_due(now) {
            let busy: BTreeSet<u16> = self.taken.keys().map(|account| account.partition()).collect();
            let before = self.leases.held().clone();
            let leases = &mut self.leases;
            let renewed = self.db.autocommit(async |connection| leases.renew(connection, now, &busy).await);
            // A renewal that was cancelled halfway is repaired by the next, which reads all leases of this owner.
            if let Err(error) = in_time(renewed).await {
                tracing::warn!(worker = &*worker, error = chain(&error), "leases could not be renewed");
            }
            self.publish_leases(&before);
            self.slots.end_jobs(self.leases.are_excessive());
        }
        let age = self.leases.renewed_at().map_or(TimeDelta::zero(), |renewed| now - renewed);
        metrics::gauge!("worker_lease_age_seconds", "worker" => worker.to_string()).set(age.as_seconds_f64());
        metrics::gauge!("worker_leases", "worker" => worker.to_string()).set(as_f64(self.leases.count()));
    }

    /// Publishes the held partitions. A sweep follows when some are new, because earlier wake-ups in them did not reach
    /// this process, and when a replica is gone, because its last wake-ups may not have been posted.
    fn publish_leases(&mut self, before: &BTreeMap<u16, i64>) {
        let board = &self.assignment.board;
        board.hold(self.leases.held().keys().copied());
        // A partition that was lost and leased again in between has another fence.
        let is_new = |(partition, fence): (&u16, &i64)| before.get(partition) != Some(fence);
        if self.leases.held().iter().any(is_new) || self.leases.lost_replica() {
            board.request_sweep();
        }
        let leases = &self.leases;
        self.schedule.retain(|account| leases.covers(account));
        self.ended.retain(|account, _| leases.covers(*account));
    }

    /// Measures how much work is due. One replica counts and the rest report 0; only prompt workers are counted.
    async fn count(&mut self) {
        if !self.assignment.board.is_prompt || Instant::now() < self.count_at {
            return;
        }
        self.count_at = Instant::now() + COUNT_INTERVAL;
        let worker = &*self.worker.name;
        let counted = async {
            if !self.leases.are_first() {
                return Ok(0);
            }
            let due = self
                .db
                .read(async |connection| {
                    self.worker.due.count(connection, self.db.clock().now(), MAX_COUNTED).await
                })
                .await?;
            Ok::<_, Error>(due)
        };
        match in_time(counted).await {
            Ok(due) => {
                metrics::gauge!("worker_due", "worker" => worker.to_owned())
                    .set(as_f64(usize::try_from(due).unwrap_or_default()));
            }
            Err(error) => tracing::warn!(worker, error = chain(&error), "due work could not be counted"),
        }
    }

    async fn end(mut self, grace: Duration) {
        self.queue.clear();
        self.next = None;
        self.slots.end_jobs(true);
        let drained = async { while self.jobs.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, drained).await.is_err() {
            tracing::warn!(worker = &*self.worker.name, "stopped with jobs still in progress");
        }
        // No job may run after the release: another process starts on these accounts immediately.
        self.jobs.shutdown().await;
        let now = self.db.clock().now();
        let leases = &mut self.leases;
        let released = self.db.autocommit(async |connection| leases.release(connection, now).await);
        if let Err(error) = in_time(released).await {
            tracing::warn!(worker = &*self.worker.name, error = chain(&error), "leases were not released");
        }
    }
}

/// Completes when the pending slot is free; never when no slot is requested.
async fn wait_for_slot(next: &mut Option<BoxFuture<'static, Slot>>) -> Slot {
    match next {
        Some(next) => next.await,
        None => std::future::pending().await,
    }
}

fn as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}
