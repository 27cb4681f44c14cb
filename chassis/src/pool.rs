//! Connections that are handed from request to request. sqlx's own pool asks the server whether it is still there each
//! time a connection comes back, which doubles the round trips of a point read. Here that is left out for reads that
//! say that they are [`done`](Connection::done); a read that failed or was given up half-way goes the safe way.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres, Transaction};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a connection is handed on before it goes through sqlx's check again, which also ends old ones.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(crate) struct Pool(Arc<Shared>);

struct Shared {
    inner: PgPool,
    /// One place for each connection, so that those who wait get theirs in turn, whichever way it comes back.
    places: Arc<Semaphore>,
    patience: Duration,
    ready: Mutex<Vec<Trusted>>,
}

struct Trusted {
    connection: PoolConnection<Postgres>,
    until: Instant,
}

impl Pool {
    /// `patience` is how long to wait for a place.
    pub fn new(inner: PgPool, size: u32, patience: Duration) -> Self {
        let places = Arc::new(Semaphore::new(size as usize));
        Self(Arc::new(Shared { inner, places, patience, ready: Mutex::default() }))
    }

    /// A connection for reading.
    pub async fn acquire(&self) -> Result<Connection, sqlx::Error> {
        let (trusted, place) = self.take().await?;
        Ok(Connection { done: false, trusted: Some(trusted), pool: self.clone(), _place: place })
    }

    /// A transaction. Its connection always goes back through sqlx, which rolls back what was not committed.
    pub async fn begin(&self) -> Result<(Transaction<'static, Postgres>, OwnedSemaphorePermit), sqlx::Error> {
        let (trusted, place) = self.take().await?;
        Ok((Transaction::begin(trusted.connection, None).await?, place))
    }

    /// Measured, because it is where a database that cannot keep up shows first.
    async fn take(&self) -> Result<(Trusted, OwnedSemaphorePermit), sqlx::Error> {
        let started = Instant::now();
        let taken = self.wait().await;
        let outcome = if taken.is_ok() { "taken" } else { "failed" };
        metrics::histogram!("pool_wait_seconds", "outcome" => outcome).record(started.elapsed());
        taken
    }

    async fn wait(&self) -> Result<(Trusted, OwnedSemaphorePermit), sqlx::Error> {
        let Shared { inner, places, patience, ready } = &*self.0;
        let waiting = tokio::time::timeout(*patience, Arc::clone(places).acquire_owned());
        let place =
            waiting.await.map_err(|_| sqlx::Error::PoolTimedOut)?.map_err(|_| sqlx::Error::PoolClosed)?;
        let known = ready.lock().unwrap_or_else(PoisonError::into_inner).pop();
        // One that was idle for too long is dropped: sqlx looks whether it still works, and hands it out again below.
        let trusted = match known.filter(|trusted| Instant::now() < trusted.until) {
            Some(trusted) => trusted,
            None => Trusted { connection: inner.acquire().await?, until: Instant::now() + TRUSTED_FOR },
        };
        Ok((trusted, place))
    }

    pub async fn close(&self) {
        self.0.places.close();
        self.0.ready.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.0.inner.close().await;
    }
}

/// A connection for reading; comes back to the pool when it is dropped, through sqlx's check unless it is done.
pub struct Connection {
    done: bool,
    /// Only empty while it is being dropped.
    trusted: Option<Trusted>,
    pool: Pool,
    // Given up after `drop` has put the connection back, so that the next in line finds it.
    _place: OwnedSemaphorePermit,
}

impl Connection {
    /// Every statement has been answered without an error: the next request may have the connection at once.
    pub fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let kept = |trusted: &Trusted| {
            self.done && Instant::now() < trusted.until && !self.pool.0.places.is_closed()
        };
        // What is not kept is dropped here, which hands it to sqlx.
        if let Some(trusted) = self.trusted.take().filter(kept) {
            self.pool.0.ready.lock().unwrap_or_else(PoisonError::into_inner).push(trusted);
        }
    }
}

impl Deref for Connection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        match &self.trusted {
            Some(trusted) => &trusted.connection,
            None => unreachable!("a connection is only given up when it is dropped"),
        }
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match &mut self.trusted {
            Some(trusted) => &mut trusted.connection,
            None => unreachable!("a connection is only given up when it is dropped"),
        }
    }
}
