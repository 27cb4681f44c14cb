//! A kind of background work, as a service declares it.

use std::sync::Arc;
use std::time::Duration;

use chassis_base::Error;
use futures::future::BoxFuture;

use super::due::Due;
use super::job::{Job, Next};

/// How many accounts a worker processes in parallel by default. Small, because jobs share the pool with requests.
const CONCURRENCY: usize = 4;

pub(super) type Run = Arc<dyn Fn(Job) -> BoxFuture<'static, Result<Next, Error>> + Send + Sync>;

/// A kind of background work.
#[derive(Clone)]
pub struct Worker {
    pub(super) name: Arc<str>,
    pub(super) due: Due,
    pub(super) run: Run,
    pub(super) concurrency: usize,
    /// How often to look for work that is not urgent. `None`: after every commit.
    pub(super) interval: Option<Duration>,
    pub(super) is_overdue_only: bool,
}

impl Worker {
    /// `name` is unique in the service. `run` does a bounded amount of one account's work. When it fails or panics, the
    /// account is paused for a time that grows with every failure; other accounts are not affected.
    pub fn new<F, R>(name: impl Into<Arc<str>>, due: Due, run: F) -> Self
    where
        F: Fn(Job) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Next, Error>> + Send + 'static,
    {
        let run: Run = Arc::new(move |job| Box::pin(run(job)));
        Self { name: name.into(), due, run, concurrency: CONCURRENCY, interval: None, is_overdue_only: false }
    }

    /// How many accounts to process in parallel.
    #[must_use]
    pub fn concurrency(mut self, accounts: usize) -> Self {
        self.concurrency = accounts.max(1);
        self
    }

    /// Looks for work only at this interval and not after every commit, for work that is not urgent.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Self {
        self.interval = Some(interval);
        self
    }

    /// Looks at each interval only for what is due then and not for what is due soon, for work that somebody else usually
    /// does before it is due.
    #[must_use]
    pub fn overdue_only(mut self) -> Self {
        self.is_overdue_only = true;
        self
    }
}
