//! The question whether the database answers, over a connection of its own beside the pool.
//!
//! A process whose connections all wait, for a lock or for their turn, is busy and not broken. Its replicas are busy at
//! the same time, and one that left for that reason would leave its requests to the others. So the answer must not
//! depend on the pool: each process has this one connection more, kept open and made anew when it is lost. Nor must a
//! server that takes seconds to answer count as gone: a look at it goes on when nobody waits for it any more.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::pooler::{explain, is_busy};

/// How long whoever asks waits for an answer. Kubernetes' probe waits longer than this.
const ASK_TIMEOUT: Duration = Duration::from_secs(3);
/// A server that has answered within this time is not gone, if it says nothing just now.
const RECENT: Duration = Duration::from_secs(10);
/// How long an answer may take, and a new connection.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the database cannot be worked with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    #[error("the database does not answer")]
    Silent,
    /// With the reason, for operators.
    #[error("the database cannot be used: {0}")]
    Refused(String),
}

/// Cheap to clone; clones share the connection.
#[derive(Clone)]
pub(crate) struct Probe(Arc<Shared>);

struct Shared {
    options: PgConnectOptions,
    wanted: Arc<Notify>,
    observed: watch::Sender<Observed>,
    looking: Mutex<Option<JoinHandle<()>>>,
}

/// What was observed last, and when it was last good.
#[derive(Clone)]
struct Observed {
    outcome: Result<(), Unreachable>,
    answered: Option<Instant>,
}

impl Probe {
    /// The connection is made when it is first needed.
    pub(crate) fn new(options: PgConnectOptions) -> Self {
        let (observed, _) = watch::channel(Observed { outcome: Err(Unreachable::Silent), answered: None });
        Self(Arc::new(Shared { options, wanted: Arc::default(), observed, looking: Mutex::default() }))
    }

    /// Whether the database answers. Those who ask at the same time get the same answer.
    pub(crate) async fn ask(&self) -> Result<(), Unreachable> {
        self.start();
        let mut observed = self.0.observed.subscribe();
        self.0.wanted.notify_one();
        let told = timeout(ASK_TIMEOUT, observed.changed()).await;
        let Observed { outcome, answered } = observed.borrow().clone();
        match told {
            Ok(_) => outcome,
            Err(_) if answered.is_some_and(|at| at.elapsed() < RECENT) => Ok(()),
            Err(_) => Err(Unreachable::Silent),
        }
    }

    fn start(&self) {
        let mut looking = self.0.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let (options, wanted, observed) = (&self.0.options, &self.0.wanted, &self.0.observed);
        looking.get_or_insert_with(|| {
            tokio::spawn(keep_looking(options.clone(), Arc::clone(wanted), observed.clone()))
        });
    }

    /// Gives the connection up.
    pub(crate) fn close(&self) {
        self.0.stop();
    }
}

impl Shared {
    fn stop(&self) {
        if let Some(looking) = self.looking.lock().unwrap_or_else(PoisonError::into_inner).take() {
            looking.abort();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Looks when it is asked to, one look at a time.
async fn keep_looking(options: PgConnectOptions, wanted: Arc<Notify>, observed: watch::Sender<Observed>) {
    let mut kept = None;
    loop {
        wanted.notified().await;
        let outcome = look(&options, &mut kept, &observed).await;
        observed.send_modify(|observed| {
            if outcome.is_ok() {
                observed.answered = Some(Instant::now());
            }
            observed.outcome = outcome;
        });
    }
}

async fn look(
    options: &PgConnectOptions,
    kept: &mut Option<PgConnection>,
    observed: &watch::Sender<Observed>,
) -> Result<(), Unreachable> {
    // Taken out, so that one whose answer was not waited for is never used again.
    if let Some(mut connection) = kept.take()
        && matches!(timeout(PING_TIMEOUT, ping(&mut connection)).await, Ok(Ok(())))
    {
        *kept = Some(connection);
        return Ok(());
    }
    let refused = |error: sqlx::Error| Unreachable::Refused(explain(error).to_string());
    let connecting = timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options)).await;
    let mut connection = connecting.map_err(|_| Unreachable::Silent)?.map_err(refused)?;
    // It let us in, that is enough: a pooler in front does so while all of its own connections are at work. So it is for
    // those who wait no longer for the rest.
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

/// In the simple protocol, which leaves nothing behind in the session.
async fn ping(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("select 1").execute(connection).await.map(|_| ())
}
