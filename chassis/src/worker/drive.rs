//! The loop of one worker: keep the leases, find accounts with work, run their jobs.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument;
use uuid::Uuid;

use super::lease::Leases;
use super::seat::{Seat, Seats};
use super::{Job, Next, Pace, Timing, Worker, backoff, due};
use crate::account::{Account, AccountId};
use crate::db::Db;
use crate::error::Error;
use crate::scope;
use crate::service::chain;

/// How many accounts are looked up at once.
const FOUND: i64 = 500;
/// The least time between two looks, however often the process commits.
const BREATH: Duration = Duration::from_millis(10);
/// How often the work that is due is counted, and how far.
const COUNT_EVERY: Duration = Duration::from_secs(15);
const COUNT_MOST: i64 = 10_000;
/// An account whose job failed is left alone for this long at first, and at most. Real time, as for polls.
const FIRST_BACKOFF: TimeDelta = TimeDelta::milliseconds(500);
const MOST_BACKOFF: TimeDelta = TimeDelta::seconds(30);
/// The most when it was the database that was away: that is not the account's doing, and work goes on soon after it is
/// back.
const MAX_AWAY_BACKOFF: TimeDelta = TimeDelta::seconds(2);

/// How long the loop waits for the database: longer than any statement may take there, so only for one that is gone
/// without a word.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(20);

enum Outcome {
    Ended(Next),
    Failed(Error),
    Panicked,
}

/// Why an account has to wait, and how long.
enum Pause {
    /// Its job asked for it.
    Asked { until: DateTime<Utc> },
    /// Its jobs fail, so many in a row.
    Failing { failures: u32, until: Instant },
}

impl Pause {
    fn is_over(&self, now: DateTime<Utc>) -> bool {
        match self {
            Self::Asked { until } => *until <= now,
            Self::Failing { until, .. } => *until <= Instant::now(),
        }
    }
}

pub(super) struct Driver {
    db: Db,
    worker: Worker,
    leases: Leases,
    poll: Duration,
    queue: VecDeque<Arc<Account>>,
    seats: Seats,
    /// The seat of the next job, while one is waited for.
    next: Option<BoxFuture<'static, Seat>>,
    /// Accounts in the queue or at work.
    taken: HashSet<AccountId>,
    jobs: JoinSet<(AccountId, Outcome)>,
    pauses: HashMap<AccountId, Pause>,
    /// Where the next look begins.
    after: Uuid,
    looked_at: Instant,
    look_at: Instant,
    count_at: Instant,
}

impl Driver {
    pub fn new(db: Db, worker: Worker, owner: Uuid, timing: Timing) -> Self {
        let leases = Leases::new(Arc::clone(&worker.name), owner, timing.lease);
        Self {
            db,
            poll: timing.poll,
            leases,
            seats: Seats::new(worker.concurrency),
            next: None,
            worker,
            queue: VecDeque::new(),
            taken: HashSet::new(),
            jobs: JoinSet::new(),
            pauses: HashMap::new(),
            after: Uuid::nil(),
            looked_at: Instant::now(),
            look_at: Instant::now(),
            count_at: Instant::now(),
        }
    }

    pub async fn drive(mut self, mut stop: watch::Receiver<Option<Duration>>) {
        let wake = Arc::clone(&self.db.wake);
        let mut woken = Box::pin(Arc::clone(&wake).notified_owned());
        let mut beat = tokio::time::interval(self.poll);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            // Kept from one turn of the loop to the next, as its place in the line is lost with it. Without anybody to sit
            // on it, a seat is not held.
            let seats = (!self.queue.is_empty()).then(|| self.seats.clone());
            self.next = seats.map(|seats| self.next.take().unwrap_or_else(|| Box::pin(seats.free())));
            tokio::select! {
                () = told_to_stop(&mut stop) => break,
                seat = free(&mut self.next) => {
                    self.next = None;
                    self.begin(seat);
                }
                Some(ended) = self.jobs.join_next() => self.ended(ended),
                () = &mut woken => {
                    // Armed again before the look, so that a commit during it is not missed.
                    woken = Box::pin(Arc::clone(&wake).notified_owned());
                    self.hurry();
                }
                _ = beat.tick() => {
                    self.keep_leases().await;
                    self.count().await;
                }
                () = tokio::time::sleep_until(self.look_at) => self.look().await,
            }
        }
        let grace = stop.borrow().unwrap_or_default();
        Box::pin(self.end(grace)).await;
    }

    /// Starts the job of the account that has waited longest.
    fn begin(&mut self, seat: Seat) {
        let Some(account) = self.queue.pop_front() else { return };
        let Some(lease) = self.leases.of(account.id) else {
            self.taken.remove(&account.id);
            return;
        };
        let span = tracing::info_span!("job", worker = &*self.worker.name, account = %account.id);
        let (id, seat) = (account.id, Arc::new(seat));
        let job = Job { db: self.db.clone(), account, lease, seat: Arc::clone(&seat) };
        // Inside the guard from its first statement on: also making the future may panic.
        let run = Arc::clone(&self.worker.run);
        let guarded = AssertUnwindSafe(async move { run(job).await }).catch_unwind();
        let outcome = async move {
            let outcome = match guarded.await {
                Ok(Ok(next)) => Outcome::Ended(next),
                Ok(Err(error)) => Outcome::Failed(error),
                Err(_) => Outcome::Panicked,
            };
            seat.leave();
            outcome
        };
        self.jobs.spawn(async move { (id, scope::background(id, outcome).await) }.instrument(span));
    }

    fn ended(&mut self, ended: Result<(AccountId, Outcome), tokio::task::JoinError>) {
        // Panics are caught inside the job, and nobody cancels one while the loop runs.
        let Ok((account, outcome)) = ended else { return };
        self.taken.remove(&account);
        let name = Arc::clone(&self.worker.name);
        let worker = &*name;
        let label = match outcome {
            Outcome::Ended(next) => {
                self.pauses.remove(&account);
                match next {
                    Next::WhenDue => {}
                    Next::Now => self.look_at = self.looked_at + BREATH,
                    Next::After(wait) => {
                        let until = self.db.clock.now() + wait;
                        self.pauses.insert(account, Pause::Asked { until });
                    }
                }
                "ended"
            }
            Outcome::Failed(Error::LeaseLost) => {
                tracing::info!(worker, %account, "another process has taken this account over");
                "lost"
            }
            Outcome::Failed(error) => {
                tracing::warn!(worker, %account, error = chain(&error), "background work failed");
                let most = if error.is_database_away() { MAX_AWAY_BACKOFF } else { MOST_BACKOFF };
                self.pause(account, most);
                "failed"
            }
            Outcome::Panicked => {
                tracing::error!(worker, %account, "background work panicked");
                self.pause(account, MOST_BACKOFF);
                "panicked"
            }
        };
        metrics::counter!("worker_jobs_total", "worker" => worker.to_owned(), "outcome" => label)
            .increment(1);
        // What was written for this account while its job ran was passed over.
        self.hurry();
    }

    fn pause(&mut self, account: AccountId, most: TimeDelta) {
        let before = match self.pauses.get(&account) {
            Some(Pause::Failing { failures, .. }) => *failures,
            _ => 0,
        };
        let failures = before.saturating_add(1);
        let wait = backoff(failures, FIRST_BACKOFF, most).to_std().unwrap_or_default();
        self.pauses.insert(account, Pause::Failing { failures, until: Instant::now() + wait });
    }

    fn hurry(&mut self) {
        if matches!(self.worker.pace, Pace::Poll) {
            self.look_at = self.look_at.min(self.looked_at + BREATH);
        }
    }

    async fn keep_leases(&mut self) {
        let now = self.db.clock.now();
        let worker = &self.worker.name;
        if self.leases.is_renewal_due(now) {
            let busy: BTreeSet<u16> = self.taken.iter().map(|account| account.partition()).collect();
            let before = self.leases.count();
            let renewed = async {
                let mut connection = self.db.read().await?;
                self.leases.renew(&mut connection, now, &busy).await?;
                connection.done();
                Ok::<_, Error>(())
            };
            if let Err(error) = in_time(renewed).await {
                tracing::warn!(worker = &**worker, error = chain(&error), "leases could not be renewed");
            }
            if self.leases.count() > before {
                self.look_at = Instant::now();
            }
            self.seats.end_jobs(self.leases.are_excessive());
        }
        let age = self.leases.renewed_at().map_or(TimeDelta::zero(), |renewed| now - renewed);
        metrics::gauge!("worker_lease_age_seconds", "worker" => worker.to_string()).set(age.as_seconds_f64());
        metrics::gauge!("worker_leases", "worker" => worker.to_string()).set(as_f64(self.leases.count()));
    }

    /// Tells operators how much is due. One replica counts, the others say 0; what is in no hurry is not counted.
    async fn count(&mut self) {
        if !matches!(self.worker.pace, Pace::Poll) || Instant::now() < self.count_at {
            return;
        }
        self.count_at = Instant::now() + COUNT_EVERY;
        let worker = &*self.worker.name;
        let counted = async {
            if !self.leases.are_first() {
                return Ok(0);
            }
            let mut connection = self.db.read().await?;
            let due = self.worker.due.count(&mut connection, self.db.clock.now(), COUNT_MOST).await?;
            connection.done();
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

    /// Looks for accounts with work due and puts them into the queue.
    async fn look(&mut self) {
        self.looked_at = Instant::now();
        self.look_at = self.looked_at + self.worker.interval(self.poll);
        // While there is plenty to do there is no need to look for more.
        if self.leases.count() == 0 || self.queue.len() > self.worker.concurrency * 2 {
            return;
        }
        if let Err(error) = in_time(self.find()).await {
            let worker = &*self.worker.name;
            tracing::warn!(worker, error = chain(&error), "work could not be looked up");
            // Also where looks are rare: a database that was away for a moment must not cost an hour.
            self.look_at = self.looked_at + self.poll;
        }
    }

    async fn find(&mut self) -> Result<(), Error> {
        let now = self.db.clock.now();
        // Failures are counted until a job succeeds.
        self.pauses.retain(|_, pause| matches!(pause, Pause::Failing { .. }) || !pause.is_over(now));
        let mut connection = self.db.read().await?;
        let found = self.worker.due.find(&mut connection, self.after, now, FOUND).await?;
        let more = i64::try_from(found.len()).is_ok_and(|count| count == FOUND);
        self.after = found.last().filter(|_| more).map_or(Uuid::nil(), |account| account.uuid());
        if more {
            self.look_at = self.looked_at + BREATH;
        }
        let ours = found.into_iter().filter(|account| self.leases.covers(*account)).collect::<Vec<_>>();
        metrics::gauge!("worker_backlog_accounts", "worker" => self.worker.name.to_string())
            .set(as_f64(ours.len()));
        let paused = |account: &AccountId| self.pauses.get(account).is_some_and(|pause| !pause.is_over(now));
        let ready = |account: &AccountId| !self.taken.contains(account) && !paused(account);
        let ready: Vec<AccountId> = ours.into_iter().filter(ready).collect();
        if !ready.is_empty() {
            self.queue.extend(due::with_settings(&mut connection, &ready).await?);
            self.taken.extend(ready);
        }
        connection.done();
        Ok(())
    }

    async fn end(mut self, grace: Duration) {
        self.queue.clear();
        self.next = None;
        self.seats.end_jobs(true);
        let drained = async { while self.jobs.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, drained).await.is_err() {
            tracing::warn!(worker = &*self.worker.name, "stopped with jobs still in progress");
        }
        self.jobs.shutdown().await;
        let now = self.db.clock.now();
        let released = async {
            let mut connection = self.db.read().await?;
            self.leases.release(&mut connection, now).await
        };
        if let Err(error) = in_time(released).await {
            tracing::warn!(worker = &*self.worker.name, error = chain(&error), "leases were not given back");
        }
    }
}

/// The seat that is waited for; for ever when none is.
async fn free(next: &mut Option<BoxFuture<'static, Seat>>) -> Seat {
    match next {
        Some(next) => next.await,
        None => std::future::pending().await,
    }
}

async fn in_time<T>(asking: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let gone = || sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
    tokio::time::timeout(DATABASE_TIMEOUT, asking).await.map_err(|_| gone())?
}

/// Also when nobody is left to tell.
async fn told_to_stop(stop: &mut watch::Receiver<Option<Duration>>) {
    let _ = stop.wait_for(Option::is_some).await;
}

fn as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}
