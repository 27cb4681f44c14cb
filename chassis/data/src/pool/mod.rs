//! A connection pool.
//!
//! A connection is reused only when it is certainly outside a transaction: a read has reported that it is
//! [`done`](Connection::done), or a transaction has been committed or rolled back completely. After a cancelled or
//! failed read the connection is inspected in a background task. A transaction that is cancelled half-way, for
//! example at a deadline, is closed with its connection, because the state of its session is unknown. When a
//! connection is lost, all idle connections are dropped, because the server is probably gone.
//!
//! sqlx's own pool is not used: it queries the server each time a connection is returned, and does not notice a `begin`
//! that was cancelled before its answer. [`permits`] decides who gets a connection, [`session`] is a single connection,
//! and [`idle`] keeps unused connections for a while.
//!
//! Futures are boxed where other crates get them: the compiler makes the code of an `async fn` anew in each crate that awaits
//! it, with all that it awaits, and here that is the log-in of PostgreSQL with its TLS.

mod idle;
mod permits;
mod session;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgQueryResult};
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres};
use tokio::sync::Semaphore;

use idle::Idle;
pub(crate) use permits::Purpose;
use permits::{Permit, Permits};
use session::{CHECK_TIMEOUT, Found, IDLE_TIMEOUT, Session, close_all, is_lost, may_pass};

/// How many connections are opened at a time, so that a server that has just restarted is not flooded with log-ins.
const MAX_CONNECTING: usize = 4;
/// The longest pause between two attempts to connect. The actual pause is random, at least half of this.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub(crate) struct Pool(Arc<Shared>);

struct Shared {
    options: PgConnectOptions,
    permits: Permits,
    connecting: Semaphore,
    timeout: Duration,
    /// How long a check of a session may take.
    check_timeout: Duration,
    /// How many connections are being inspected because they were returned without being done.
    inspections: AtomicUsize,
    idle: Idle,
}

/// Why a commit failed, and so whether the transaction may be committed.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// The server refused it: the transaction is not committed.
    Refused(sqlx::Error),
    /// The connection was lost before the answer: the transaction may be committed.
    Unknown(sqlx::Error),
}

impl Pool {
    /// `timeout` is how long to wait for a connection. `check_timeout` replaces the default for the check of a session
    /// where a pooler may let the check wait for a server connection.
    pub(crate) fn new(
        options: PgConnectOptions,
        size: u32,
        timeout: Duration,
        check_timeout: Option<Duration>,
    ) -> Self {
        let permits = Permits::new(size as usize);
        let connecting = Semaphore::new(MAX_CONNECTING);
        let check_timeout = check_timeout.unwrap_or(CHECK_TIMEOUT);
        let (inspections, idle) = (AtomicUsize::default(), Idle::new(IDLE_TIMEOUT));
        Self(Arc::new(Shared { options, permits, connecting, timeout, check_timeout, inspections, idle }))
    }

    /// Takes a connection for reading.
    pub(crate) fn acquire(&self, purpose: Purpose) -> BoxFuture<'_, Result<Connection, sqlx::Error>> {
        Box::pin(async move { Ok(Connection(Some(measured(self.borrow(purpose)).await?))) })
    }

    /// Begins a transaction. If the connection turns out to be lost, another one is taken: nothing has been done yet.
    pub(crate) fn begin(&self, purpose: Purpose) -> BoxFuture<'_, Result<Transaction, sqlx::Error>> {
        Box::pin(measured(async move {
            let until = Instant::now() + self.0.timeout;
            let mut borrowed = self.borrow(purpose).await?;
            loop {
                match sqlx::raw_sql("BEGIN").execute(&mut borrowed.session.connection).await {
                    Ok(_) => return Ok(Transaction(Some(borrowed))),
                    Err(error) if is_lost(&error) && Instant::now() < until => {
                        self.drop_idle();
                        borrowed.session = self.session(until).await?;
                    }
                    Err(error) => return Err(error),
                }
            }
        }))
    }

    /// Takes a connection for one statement that commits by itself.
    pub(crate) async fn single(&self, purpose: Purpose) -> Result<Single, sqlx::Error> {
        Ok(Single(measured(self.borrow(purpose)).await?))
    }

    async fn borrow(&self, purpose: Purpose) -> Result<Borrowed, sqlx::Error> {
        let until = Instant::now() + self.0.timeout;
        let waiting = tokio::time::timeout_at(until.into(), self.0.permits.take(purpose));
        let permit = match waiting.await {
            Ok(Ok(permit)) => permit,
            Ok(Err(permits::Refused::Closed)) => return Err(sqlx::Error::PoolClosed),
            Ok(Err(permits::Refused::Full)) | Err(_) => return Err(sqlx::Error::PoolTimedOut),
        };
        Ok(Borrowed { session: self.session(until).await?, pool: self.clone(), permit })
    }

    async fn session(&self, until: Instant) -> Result<Session, sqlx::Error> {
        loop {
            let Some(mut session) = self.0.idle.take() else { return self.connect(until).await };
            // While a connection is being inspected, the server may be gone; then no idle session is trusted.
            let trusted = session.is_trusted() && self.0.inspections.load(Ordering::Relaxed) == 0;
            if trusted || session.check(self.0.check_timeout).await == Found::Clean {
                return Ok(session);
            }
            // An idle session that fails its check means that the server or the network has failed.
            self.drop_idle();
        }
    }

    /// Opens a connection. Retries errors that may be temporary, until the caller's time is up.
    async fn connect(&self, until: Instant) -> Result<Session, sqlx::Error> {
        loop {
            let turn = tokio::time::timeout_at(until.into(), self.0.connecting.acquire());
            let turn = turn.await.map_err(|_| sqlx::Error::PoolTimedOut)?;
            let error = match Session::connect(&self.0.options, until).await {
                Ok(session) => return Ok(session),
                Err(error) => error,
            };
            drop(turn);
            let pause = RETRY_INTERVAL.mul_f64(rand::random_range(0.5..1.0));
            if !may_pass(&error) || Instant::now() + pause >= until {
                tracing::warn!(%error, "connecting to the database failed");
                return Err(error);
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Drops every idle session after one connection was lost.
    fn drop_idle(&self) {
        drop(self.0.idle.take_all());
    }

    pub(crate) async fn close(&self) {
        self.0.permits.close();
        close_all(self.0.idle.take_all()).await;
    }
}

/// Records how long a caller waits for a connection, which is the first sign of an overloaded database.
async fn measured<T>(taking: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    let started = Instant::now();
    let taken = taking.await;
    let outcome = if taken.is_ok() { "taken" } else { "failed" };
    metrics::histogram!("pool_wait_seconds", "outcome" => outcome).record(started.elapsed());
    taken
}

/// A connection with the permit for it. Dropping it closes the connection.
struct Borrowed {
    session: Session,
    pool: Pool,
    // Released last: the session must be idle or closed before the next caller gets the permit.
    permit: Permit,
}

impl Borrowed {
    /// Returns the connection to the pool without another check.
    fn give_back(self) {
        let Self { session, pool, permit } = self;
        if session.is_old() || pool.0.permits.is_closed() {
            spawn_detached(session.close());
        } else {
            pool.0.idle.put(session);
        }
        drop(permit);
    }

    /// Returns the connection after a statement that has committed, or not.
    fn committed(mut self, answer: Result<PgQueryResult, sqlx::Error>) -> Result<PgQueryResult, CommitError> {
        match answer {
            Ok(result) => {
                self.session.proven();
                self.give_back();
                Ok(result)
            }
            Err(error @ sqlx::Error::Database(_)) if !is_lost(&error) => {
                // Dropped as a read connection, it is inspected and then reused.
                drop(Connection(Some(self)));
                Err(CommitError::Refused(error))
            }
            Err(error) => {
                self.return_checked(&Found::Lost);
                Err(CommitError::Unknown(error))
            }
        }
    }

    fn return_checked(self, found: &Found) {
        match found {
            Found::Clean => self.give_back(),
            Found::Lost => self.pool.drop_idle(),
            Found::Unclean => {}
        }
    }
}

/// Runs work in the background that no request waits for. At the end of the process it is dropped.
fn spawn_detached<T>(work: impl Future<Output = T> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async { drop(work.await) });
    }
}

/// A connection for reading. If it is dropped without [`done`](Self::done), it is inspected before it is reused.
pub struct Connection(Option<Borrowed>);

impl Connection {
    /// Returns the connection for immediate reuse. Every statement must have been answered without an error.
    pub fn done(mut self) {
        if let Some(mut borrowed) = self.0.take() {
            borrowed.session.proven();
            borrowed.give_back();
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(mut borrowed) = self.0.take() {
            let inspection = Inspection::new(&borrowed.pool);
            spawn_detached(async move {
                let found = borrowed.session.check(borrowed.pool.0.check_timeout).await;
                borrowed.return_checked(&found);
                drop(inspection);
            });
        }
    }
}

/// Counts a connection as being inspected until it is dropped.
struct Inspection(Pool);

impl Inspection {
    fn new(pool: &Pool) -> Self {
        pool.0.inspections.fetch_add(1, Ordering::Relaxed);
        Self(pool.clone())
    }
}

impl Drop for Inspection {
    fn drop(&mut self) {
        self.0.0.inspections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Deref for Connection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        match &self.0 {
            Some(borrowed) => &borrowed.session.connection,
            None => unreachable!("a connection is taken out only when it is dropped"),
        }
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match &mut self.0 {
            Some(borrowed) => &mut borrowed.session.connection,
            None => unreachable!("a connection is taken out only when it is dropped"),
        }
    }
}

/// A connection for one statement that commits by itself. Dropping it closes the connection.
pub(crate) struct Single(Borrowed);

impl Single {
    pub(crate) async fn execute(
        mut self,
        statement: Query<'_, Postgres, PgArguments>,
    ) -> Result<PgQueryResult, CommitError> {
        // If the caller is cancelled here, the connection is closed and not reused.
        let answer = statement.execute(&mut self.0.session.connection).await;
        self.0.committed(answer)
    }
}

/// An open transaction. Dropping it closes its connection, and the server rolls it back.
pub(crate) struct Transaction(Option<Borrowed>);

impl Transaction {
    pub(crate) const NOT_BEGUN: Self = Self(None);

    pub(crate) fn is_begun(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) async fn commit(mut self) -> Result<(), CommitError> {
        let Some(borrowed) = &mut self.0 else { return Ok(()) };
        // If the caller is cancelled here, the connection is still in `self`: it is closed and not reused.
        let committed = sqlx::raw_sql("COMMIT").execute(&mut borrowed.session.connection).await;
        let Some(borrowed) = self.0.take() else { return Ok(()) };
        borrowed.committed(committed).map(|_| ())
    }

    /// Rolls back in the background. All statements must have been answered.
    pub(crate) fn roll_back(mut self) {
        if let Some(mut borrowed) = self.0.take() {
            spawn_detached(async move {
                let found = borrowed.session.roll_back().await;
                borrowed.return_checked(&found);
            });
        }
    }
}

impl Deref for Transaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        match &self.0 {
            Some(borrowed) => &borrowed.session.connection,
            None => unreachable!("no statement runs before the beginning or after the end of a transaction"),
        }
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match &mut self.0 {
            Some(borrowed) => &mut borrowed.session.connection,
            None => unreachable!("no statement runs before the beginning or after the end of a transaction"),
        }
    }
}
