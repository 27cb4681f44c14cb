//! Background work: the one mechanism for everything that no caller waits for.
//!
//! Accounts hash into partitions, a process leases partitions ([`lease`]) and works through the accounts in them that
//! have work due, several at once but never one account twice at the same time ([`drive`]). A job that only waits for
//! somebody outside leaves its [`seat`] to another account's. Knows nothing of what the work is.
//!
//! Nobody looks at all accounts to find those with work. Every commit wakes its account ([`wake`]), also in other
//! processes ([`exchange`]); of a woken account is asked when each worker is due for it ([`examine`], [`due`]); and now and
//! then all accounts are looked at for what comes due by itself ([`sweep`]).

mod backoff;
mod board;
mod drive;
mod due;
mod examine;
mod exchange;
mod lease;
mod schedule;
mod seat;
mod sweep;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::account::{Account, AccountId};
use crate::db::Db;
use crate::error::Error;
use crate::write::Tx;

pub use backoff::backoff;
pub use due::{AT_ONCE, Due};
pub use lease::Lease;
pub(crate) use wake::Wake;

use board::{Board, Boards};
use seat::Seat;
use wake::MAX_WORKERS;

/// How many accounts a worker works on at once, unless it says otherwise. Small: they share the pool with the requests.
const CONCURRENCY: usize = 4;

/// The times of leases and polls.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long a lease lasts without a sign of life; renewed at a third of it. Measured by the service's clock.
    pub lease: TimeDelta,
    /// How often to ask whether other processes have left work. Real time, whatever the service's clock says.
    pub poll: Duration,
    /// How often to look at all accounts. Real time too.
    pub sweep: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease: TimeDelta::seconds(15),
            poll: Duration::from_millis(250),
            sweep: Duration::from_secs(30),
        }
    }
}

/// What a job says about the account's next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When there is work due again.
    WhenDue,
    /// At once: there was more than one job should do.
    Now,
    /// Not before this time has passed.
    After(TimeDelta),
}

/// One account's turn.
#[derive(Clone)]
pub struct Job {
    db: Db,
    account: Arc<Account>,
    lease: Lease,
    seat: Arc<Seat>,
}

impl Job {
    pub fn account(&self) -> &Account {
        &self.account
    }

    pub fn account_id(&self) -> AccountId {
        self.account.id
    }

    /// For reading. Writing goes through [`Job::write`].
    pub fn db(&self) -> &Db {
        &self.db
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.db.clock.now()
    }

    /// Lets another account's job run in its place: for a job that only waits for somebody outside, who may take long.
    /// It is still the account's only job.
    pub fn step_aside(&self) {
        self.seat.leave();
    }

    /// Takes its place again, as soon as there is one.
    pub async fn step_in(&self) {
        self.seat.take().await;
    }

    /// Whether a job that could go on for ever has to come to its end: the process stops, or another one waits for its
    /// share of the accounts.
    pub fn has_to_end(&self) -> bool {
        self.seat.has_to_end()
    }

    /// A write transaction that fails with [`Error::LeaseLost`] once another process has taken the work over. What
    /// `operation` needs comes as `input`: a closure that borrows would not be `Send`.
    pub async fn write<R, T, E, F>(&self, input: &R, operation: F) -> Result<T, Error>
    where
        E: Into<Error>,
        F: AsyncFn(&mut Tx<'_>, &R) -> Result<T, E>,
    {
        self.db.fenced(&self.lease, &self.account, input, operation).await
    }
}

type Run = Arc<dyn Fn(Job) -> BoxFuture<'static, Result<Next, Error>> + Send + Sync>;

/// A kind of background work.
#[derive(Clone)]
pub struct Worker {
    name: Arc<str>,
    due: Due,
    run: Run,
    concurrency: usize,
    /// How often it looks for work, if it is in no hurry: not after every commit.
    interval: Option<Duration>,
}

impl Worker {
    /// `name` is unique in the service. `run` does a bounded amount of one account's work. When it fails or panics, the
    /// account is left alone for a while that grows with every failure; other accounts do not notice.
    pub fn new<F, R>(name: impl Into<Arc<str>>, due: Due, run: F) -> Self
    where
        F: Fn(Job) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Next, Error>> + Send + 'static,
    {
        let run: Run = Arc::new(move |job| Box::pin(run(job)));
        Self { name: name.into(), due, run, concurrency: CONCURRENCY, interval: None }
    }

    /// How many accounts to work on at once.
    #[must_use]
    pub fn concurrency(mut self, accounts: usize) -> Self {
        self.concurrency = accounts.max(1);
        self
    }

    /// For work that is in no hurry: looks for it only so often, and not after every commit.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Self {
        self.interval = Some(interval);
        self
    }
}

/// The running workers of a process. Dropped without [`Workers::stop`] they end at once and keep their leases, as if
/// the process had been killed.
pub struct Workers {
    tasks: JoinSet<()>,
    boards: Arc<Boards>,
    stop: watch::Sender<Option<Duration>>,
}

impl Workers {
    /// Starts them as one replica.
    pub fn start(db: &Db, workers: Vec<Worker>, timing: Timing) -> Self {
        assert!(workers.len() <= MAX_WORKERS, "more than {MAX_WORKERS} kinds of background work");
        let (stop, stopped) = watch::channel(None);
        let owner = db.clock.id();
        let mut tasks = JoinSet::new();
        let mut all = Vec::new();
        let inbox = db.wake.listen();
        for (number, worker) in workers.into_iter().enumerate() {
            let (name, interval) = (Arc::clone(&worker.name), worker.interval.unwrap_or(timing.sweep));
            let (board, found) = Board::new(name, worker.due.clone(), worker.interval.is_none(), interval);
            let board = Arc::new(board);
            all.push(Arc::clone(&board));
            let place = drive::Place { number, board, found, inbox: Arc::clone(&inbox) };
            let driver = drive::Driver::new(db.clone(), worker, owner, timing, place);
            tasks.spawn(driver.drive(stopped.clone()));
        }
        let boards = Arc::new(Boards { inbox, all });
        let poll = timing.poll;
        tasks.spawn(exchange::Exchange::new(db.clone(), Arc::clone(&boards), poll).run(stopped.clone()));
        tasks.spawn(examine::Examiner::new(db.clone(), Arc::clone(&boards), poll).run(stopped.clone()));
        tasks.spawn(sweep::Sweeper::new(db.clone(), Arc::clone(&boards), poll).run(stopped));
        Self { tasks, boards, stop }
    }

    /// Whether this process is the one that does what one replica does for all; to be asked whenever it matters.
    pub(crate) fn is_first(&self) -> impl Fn() -> bool + use<> {
        let boards = Arc::clone(&self.boards);
        move || boards.all.first().is_some_and(|board| board.is_first())
    }

    /// Begins no more jobs, lets the running ones end within `grace`, and gives the leases back.
    pub async fn stop(mut self, grace: Duration) {
        self.stop.send_replace(Some(grace));
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a worker did not end well");
            }
        }
    }
}

/// Says that the workers are to stop, and how long their jobs may take to end.
type Stop = watch::Receiver<Option<Duration>>;

/// The beat of a loop; one that was held up does not hurry after it.
fn every(interval: Duration) -> tokio::time::Interval {
    let mut beat = tokio::time::interval(interval);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    beat
}

/// Also when nobody is left to tell.
async fn told_to_stop(stop: &mut Stop) {
    let _ = stop.wait_for(Option::is_some).await;
}

/// How long the loops wait for the database: longer than any statement may take there, so only for one that is gone
/// without a word.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(20);

async fn in_time<T>(asking: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(DATABASE_TIMEOUT, asking).await.map_err(|_| gone())?
}

/// The database does not answer.
fn gone() -> Error {
    sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()).into()
}
