//! The loop of one worker: waits until an account is due and runs its job. It does nothing while no account waits.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use chassis_base::error::chain;
use chassis_base::{Account, AccountId, Error};
use chassis_data::db::Db;
use chassis_data::lease::Lease;
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
use super::schedule::Schedule;
use super::slot::{Slot, Slots};
use super::stop::{Stop, in_time, stopped};
use super::timing::Timing;
use super::wake::Inbox;
use crate::interval::every;

/// How often due work is counted for the metrics while some accounts wait, and up to which number.
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
    /// Reports that no job runs anymore after the stop.
    pub drained: mpsc::UnboundedSender<usize>,
}

pub(super) struct Driver {
    db: Db,
    worker: Worker,
    assignment: Assignment,
    owner: Uuid,
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
    /// The length of the queue that the metrics show.
    shown: usize,
}

impl Driver {
    pub(super) fn new(db: Db, worker: Worker, owner: Uuid, timing: Timing, assignment: Assignment) -> Self {
        let horizon = TimeDelta::from_std(assignment.board.sweep_interval * 2).unwrap_or(TimeDelta::MAX);
        Self {
            db,
            poll: timing.poll,
            horizon,
            owner,
            assignment,
            slots: Slots::new(worker.concurrency),
            next: None,
            worker,
            schedule: Schedule::default(),
            queue: VecDeque::new(),
            taken: HashMap::new(),
            jobs: JoinSet::new(),
            ended: HashMap::new(),
            shown: 0,
        }
    }

    pub(super) async fn drive(mut self, mut stop: Stop) {
        let board = Arc::clone(&self.assignment.board);
        let (mut ticker, mut count_ticker) = (every(self.poll), every(COUNT_INTERVAL));
        loop {
            self.show_backlog();
            // The acquisition is kept across iterations, because dropping it would lose the place in the semaphore's
            // queue. While no account is ready, no slot is requested.
            let may_begin = !self.queue.is_empty() && board.is_current(self.db.clock().now());
            let slots = may_begin.then(|| self.slots.clone());
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
                () = board.leases_changed.notified() => self.follow_leases(),
                // The service's clock may be moved, so the time until the next account is due cannot be slept.
                _ = ticker.tick(), if !self.schedule.is_empty() || !self.queue.is_empty() => self.enqueue_ready(),
                _ = count_ticker.tick() => self.count().await,
            }
        }
        let grace = stop.borrow().unwrap_or_default();
        Box::pin(self.end(grace)).await;
    }

    /// Schedules an account for the time at which it is due.
    fn schedule_account(&mut self, Found { account, asked, at }: Found) {
        // An account that is queued or running is examined again when its job has ended.
        if self.taken.contains_key(&account.id) || !self.assignment.board.holds(account.id) {
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
            // Otherwise the partition is another's by now.
            if self.assignment.board.add_job(account.id) {
                self.taken.insert(account.id, Arc::clone(&account));
                self.queue.push_back(account);
            }
        }
    }

    fn show_backlog(&mut self) {
        let length = self.queue.len();
        if std::mem::replace(&mut self.shown, length) != length {
            metrics::gauge!("worker_backlog_accounts", "worker" => self.worker.name.to_string())
                .set(as_f64(length));
        }
    }

    /// Removes the account from those with a job, so that its partition can be given back.
    fn untake(&mut self, account: AccountId) -> Option<Arc<Account>> {
        let taken = self.taken.remove(&account)?;
        self.assignment.board.remove_job(account);
        Some(taken)
    }

    /// Starts the job of the account that has waited longest.
    fn begin(&mut self, slot: Slot) {
        let Some(account) = self.queue.pop_front() else { return };
        let Some(fence) = self.assignment.board.fence(account.id) else {
            self.untake(account.id);
            return;
        };
        let lease = Lease::new(Arc::clone(&self.worker.name), account.id.partition(), self.owner, fence);
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
        let Some(account) = self.untake(id) else { return };
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
                // This process may have it again by now, and what the sweep then found was ignored.
                self.assignment.inbox.wake(id, 1 << self.assignment.number);
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

    /// Drops accounts whose partition another process holds now, and asks jobs to end whose partition another waits for.
    fn follow_leases(&mut self) {
        let board = &self.assignment.board;
        self.schedule.retain(|account| board.holds(account));
        self.ended.retain(|account, _| board.holds(*account));
        self.slots.end_jobs(board.is_excessive());
    }

    /// Measures how much work is due, for prompt workers. Without overdue accounts in this replica it is nothing, and no
    /// query is needed. The query counts the work of all replicas.
    async fn count(&mut self) {
        let worker = &*self.worker.name;
        // Also now and then without a change, because a gauge exists only once it was set.
        metrics::gauge!("worker_backlog_accounts", "worker" => worker.to_owned())
            .set(as_f64(self.queue.len()));
        if !self.assignment.board.is_prompt {
            return;
        }
        let now = self.db.clock().now();
        let is_behind = !self.taken.is_empty() || self.schedule.is_overdue(now);
        let counted = async {
            if !is_behind {
                return Ok(0);
            }
            let count = async |connection: &mut _| self.worker.due.count(connection, now, MAX_COUNTED).await;
            self.db.read(count).await
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
        // Fails only when the keeper is gone; then the leases expire.
        let _ = self.assignment.drained.send(self.assignment.number);
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
