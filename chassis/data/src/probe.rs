//! The readiness check of the database, over its own connection outside the pool.
//!
//! A process whose connections are all waiting, for a lock or for the server, is busy and not broken. Its replicas
//! are busy at the same time, and if it became unready, they would get its requests too. So the check must not depend
//! on the pool: each process has one additional connection, which stays open and is replaced when it is lost. A
//! server that takes seconds to answer must not count as unreachable either, so a check continues after its callers
//! have given up.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::pooler::{explain, is_busy};

/// How long a caller waits for a check. The timeout of the Kubernetes probe is longer.
const ASK_TIMEOUT: Duration = Duration::from_secs(3);
/// A server that has answered within this time counts as reachable while a check is still running.
const RECENT: Duration = Duration::from_secs(10);
/// How long a ping may take.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// How long opening a new connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the database cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    #[error("the database does not answer")]
    Silent,
    /// The reason is for operators.
    #[error("the database cannot be used: {0}")]
    Refused(String),
}

/// Cheap to clone; clones share the connection.
#[derive(Clone)]
pub(crate) struct Probe(Arc<Shared>);

struct Shared {
    options: PgConnectOptions,
    requested: Arc<Notify>,
    observed: watch::Sender<Observed>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// The outcome of the last check, and the time of the last successful one.
#[derive(Clone)]
struct Observed {
    outcome: Result<(), Unreachable>,
    answered: Option<Instant>,
}

impl Probe {
    /// The connection is opened by the first check.
    pub(crate) fn new(options: PgConnectOptions) -> Self {
        let (observed, _) = watch::channel(Observed { outcome: Err(Unreachable::Silent), answered: None });
        Self(Arc::new(Shared { options, requested: Arc::default(), observed, task: Mutex::default() }))
    }

    /// Checks that the database answers. Concurrent callers share one check.
    pub(crate) async fn ask(&self) -> Result<(), Unreachable> {
        self.start();
        let mut observed = self.0.observed.subscribe();
        self.0.requested.notify_one();
        let notified = timeout(ASK_TIMEOUT, observed.changed()).await;
        let Observed { outcome, answered } = observed.borrow().clone();
        match notified {
            Ok(_) => outcome,
            Err(_) if answered.is_some_and(|at| at.elapsed() < RECENT) => Ok(()),
            Err(_) => Err(Unreachable::Silent),
        }
    }

    fn start(&self) {
        let mut task = self.0.task.lock().unwrap_or_else(PoisonError::into_inner);
        let (options, requested, observed) = (&self.0.options, &self.0.requested, &self.0.observed);
        task.get_or_insert_with(|| {
            tokio::spawn(run_checks(options.clone(), Arc::clone(requested), observed.clone()))
        });
    }

    pub(crate) fn close(&self) {
        self.0.stop();
    }
}

impl Shared {
    fn stop(&self) {
        if let Some(task) = self.task.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs a check on request, one at a time.
async fn run_checks(options: PgConnectOptions, requested: Arc<Notify>, observed: watch::Sender<Observed>) {
    let mut kept = None;
    loop {
        requested.notified().await;
        let outcome = check(&options, &mut kept, &observed).await;
        observed.send_modify(|observed| {
            if outcome.is_ok() {
                observed.answered = Some(Instant::now());
            }
            observed.outcome = outcome;
        });
    }
}

async fn check(
    options: &PgConnectOptions,
    kept: &mut Option<PgConnection>,
    observed: &watch::Sender<Observed>,
) -> Result<(), Unreachable> {
    // The connection is taken out, so that after a timeout it is never reused with an answer still outstanding.
    if let Some(mut connection) = kept.take()
        && matches!(timeout(PING_TIMEOUT, ping(&mut connection)).await, Ok(Ok(())))
    {
        *kept = Some(connection);
        return Ok(());
    }
    let refused = |error: sqlx::Error| Unreachable::Refused(explain(error).to_string());
    let connecting = timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options)).await;
    let mut connection = connecting.map_err(|_| Unreachable::Silent)?.map_err(refused)?;
    // A successful log-in is enough: a pooler accepts clients while all of its server connections are busy. It is
    // stored without a notification, for callers whose wait ends before the ping is answered.
    observed.send_if_modified(|observed| {
        observed.answered = Some(Instant::now());
        false
    });
    match timeout(PING_TIMEOUT, ping(&mut connection)).await {
        Ok(Ok(())) => *kept = Some(connection),
        Err(_) => {}
        Ok(Err(error)) if is_busy(&error) => {}
        Ok(Err(error)) => return Err(refused(error)),
    }
    Ok(())
}

/// Uses the simple protocol, which leaves no prepared statement in the session.
async fn ping(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("select 1").execute(connection).await.map(|_| ())
}
