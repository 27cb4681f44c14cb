//! Connections that are handed from request to request.
//!
//! One comes back only when it is known to be outside a transaction: a read says that it is
//! [`done`](Connection::done), a transaction has been committed or rolled back in full. A read that is given up is looked at
//! first, beside the requests; a transaction that is given up half-way, as at a deadline, is closed, because nobody
//! knows what its session still does. After the first connection that is lost, all idle ones are dropped: the server
//! has gone, and they with it.
//!
//! Not sqlx's own pool: that one asks the server each time a connection comes back, and does not notice a `begin` that
//! was given up before it was answered. [`permits`] says who gets a connection, [`session`] what one is, [`idle`] how long
//! one is kept that nobody needs.

mod idle;
mod permits;
mod session;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sqlx::PgConnection;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::Semaphore;

use idle::Idle;
pub(crate) use permits::Purpose;
use permits::{Permit, Permits};
use session::{CHECK_TIMEOUT, Found, IDLE_TIMEOUT, Session, close_all, is_lost, may_pass};

/// How many connections are made at once: a server that has just come back is not buried in log-ins.
const MAX_CONNECTING: usize = 4;
/// Between two attempts to connect; half to all of it, by chance.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub(crate) struct Pool(Arc<Shared>);

struct Shared {
    options: PgConnectOptions,
    permits: Permits,
    connecting: Semaphore,
    timeout: Duration,
    /// How long a session may take to prove itself.
    check_timeout: Duration,
    /// How many connections are being looked at because they came back without being done.
    inspections: AtomicUsize,
    idle: Idle,
}

/// Whether a transaction is committed.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// It is not.
    Refused(sqlx::Error),
    /// The connection was lost before the answer came.
    Unknown(sqlx::Error),
}

impl Pool {
    /// `timeout` is how long to wait for a connection. `check_timeout` is how long a session may take to answer, if there is
    /// somebody in between who lets it wait for its turn.
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

    /// A connection for reading.
    pub(crate) async fn acquire(&self, purpose: Purpose) -> Result<Connection, sqlx::Error> {
        let borrowed = measured(self.borrow(purpose)).await?;
        Ok(Connection(Some(borrowed)))
    }

    /// A transaction. Of a connection that turns out to be lost nothing was done yet, so another one is taken.
    pub(crate) async fn begin(&self, purpose: Purpose) -> Result<Transaction, sqlx::Error> {
        measured(async {
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
        })
        .await
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
            // A connection that is being inspected may be the first of many that are lost.
            let trusted = session.is_trusted() && self.0.inspections.load(Ordering::Relaxed) == 0;
            if trusted || session.check(self.0.check_timeout).await == Found::Clean {
                return Ok(session);
            }
            // An idle session has no reason not to answer.
            self.drop_idle();
        }
    }

    /// Tries for as long as there is somebody who waits.
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
                tracing::warn!(%error, "no connection to the database");
                return Err(error);
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Drops every idle session: a connection of theirs was lost.
    fn drop_idle(&self) {
        drop(self.0.idle.take_all());
    }

    pub(crate) async fn close(&self) {
        self.0.permits.close();
        close_all(self.0.idle.take_all()).await;
    }
}

/// Measured, because it is where a database that cannot keep up shows first.
async fn measured<T>(taking: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    let started = Instant::now();
    let taken = taking.await;
    let outcome = if taken.is_ok() { "taken" } else { "failed" };
    metrics::histogram!("pool_wait_seconds", "outcome" => outcome).record(started.elapsed());
    taken
}

/// A connection and the right to use it. Dropped, the connection is closed.
struct Borrowed {
    session: Session,
    pool: Pool,
    // Given up last, so that the next in line finds the connection.
    permit: Permit,
}

impl Borrowed {
    /// For the next, who may have it at once.
    fn give_back(self) {
        let Self { session, pool, permit } = self;
        if session.is_old() || pool.0.permits.is_closed() {
            beside(session.close());
        } else {
            pool.0.idle.put(session);
        }
        drop(permit);
    }

    fn return_checked(self, found: &Found) {
        match found {
            Found::Clean => self.give_back(),
            Found::Lost => self.pool.drop_idle(),
            Found::Unclean => {}
        }
    }
}

/// Runs what no request waits for; not at all when the process ends.
fn beside<T>(work: impl Future<Output = T> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async { drop(work.await) });
    }
}

/// A connection for reading. Unless it is done, it is looked at before anyone else gets it.
pub struct Connection(Option<Borrowed>);

impl Connection {
    /// Every statement has been answered without an error: the next request may have the connection at once.
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
            beside(async move {
                let found = borrowed.session.check(borrowed.pool.0.check_timeout).await;
                borrowed.return_checked(&found);
                drop(inspection);
            });
        }
    }
}

/// A connection is being looked at.
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
            None => unreachable!("a connection is only given up when it is dropped"),
        }
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match &mut self.0 {
            Some(borrowed) => &mut borrowed.session.connection,
            None => unreachable!("a connection is only given up when it is dropped"),
        }
    }
}

/// An open transaction. Dropped before its end, its connection is closed, and with it the transaction.
pub(crate) struct Transaction(Option<Borrowed>);

impl Transaction {
    pub(crate) async fn commit(mut self) -> Result<(), CommitError> {
        let Some(borrowed) = &mut self.0 else { return Ok(()) };
        let committed = sqlx::raw_sql("COMMIT").execute(&mut borrowed.session.connection).await;
        let Some(mut borrowed) = self.0.take() else { return Ok(()) };
        match committed {
            Ok(_) => {
                borrowed.session.proven();
                borrowed.give_back();
                Ok(())
            }
            Err(error @ sqlx::Error::Database(_)) if !is_lost(&error) => {
                drop(Connection(Some(borrowed)));
                Err(CommitError::Refused(error))
            }
            Err(error) => {
                borrowed.return_checked(&Found::Lost);
                Err(CommitError::Unknown(error))
            }
        }
    }

    /// Undoes it all, beside the request: its statements have been answered.
    pub(crate) fn roll_back(mut self) {
        if let Some(mut borrowed) = self.0.take() {
            beside(async move {
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
            None => unreachable!("a transaction is only given up at its end"),
        }
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match &mut self.0 {
            Some(borrowed) => &mut borrowed.session.connection,
            None => unreachable!("a transaction is only given up at its end"),
        }
    }
}
