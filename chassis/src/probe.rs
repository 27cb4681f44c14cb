//! The question whether the database answers, over a connection of its own beside the pool.
//!
//! A process whose connections all wait, for a lock or for their turn, is busy and not broken. Its replicas are busy at
//! the same time, and one that left for that reason would leave its requests to the others. So the answer must not
//! depend on the pool: each process has this one connection more, kept open and made anew when it is lost.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

/// For an answer as a whole. Kubernetes' probe waits longer than this.
const PATIENCE: Duration = Duration::from_secs(3);
/// How much of it is left for a new connection when the one that was kept says nothing.
const FOR_A_NEW_ONE: Duration = Duration::from_secs(1);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Cheap to clone; clones share the connection.
#[derive(Clone)]
pub(crate) struct Probe(Arc<Shared>);

struct Shared {
    options: PgConnectOptions,
    kept: Mutex<Option<PgConnection>>,
}

/// Why the database cannot be worked with.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    #[error("the database does not answer")]
    Silent,
    #[error("the database cannot be used")]
    Refused(#[source] sqlx::Error),
}

impl Probe {
    /// The connection is made when it is first needed.
    pub fn new(options: PgConnectOptions) -> Self {
        Self(Arc::new(Shared { options, kept: Mutex::default() }))
    }

    /// Whether the database answers. Those who ask at the same time take turns.
    pub async fn ask(&self) -> Result<(), Unreachable> {
        let until = Instant::now() + PATIENCE;
        let mut kept = timeout_at(until, self.0.kept.lock()).await.map_err(|_| Unreachable::Silent)?;
        // Taken out, so that one whose answer was not waited for is never used again.
        if let Some(mut connection) = kept.take()
            && matches!(timeout_at(until - FOR_A_NEW_ONE, greet(&mut connection)).await, Ok(Ok(())))
        {
            *kept = Some(connection);
            return Ok(());
        }
        let connecting = timeout_at(until, PgConnection::connect_with(&self.0.options)).await;
        let mut connection = connecting.map_err(|_| Unreachable::Silent)?.map_err(Unreachable::Refused)?;
        match timeout_at(until, greet(&mut connection)).await {
            Ok(Ok(())) => *kept = Some(connection),
            Ok(Err(error)) => return Err(Unreachable::Refused(error)),
            // It let us in. A pooler in front does that while all of its own connections are at work: busy.
            Err(_) => {}
        }
        Ok(())
    }

    /// Tells the server; without an answer it finds out by itself.
    pub async fn close(&self) {
        if let Some(connection) = self.0.kept.lock().await.take() {
            let _ = timeout(CLOSE_TIMEOUT, connection.close()).await;
        }
    }
}

/// In the simple protocol, which leaves nothing behind in the session.
async fn greet(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("select 1").execute(connection).await.map(|_| ())
}
