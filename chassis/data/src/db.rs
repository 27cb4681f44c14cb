//! The database of one service: a small pool with limits on every connection.

use std::sync::Arc;
use std::time::Duration;

use chassis_base::{Account, AccountId, Clock, Error};
use sqlx::PgConnection;

use crate::account;
use crate::connect::{Address, in_schema, plain_options};
use crate::outbox::Listener;
use crate::pool::{Connection, Pool, Purpose};
use crate::probe::{Probe, Unreachable};
use crate::session_settings::{LIMITS, Missing, SessionSettings};
use crate::wake::Wake;

/// How long a request waits for a free connection before it is told to come back.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// The pool of a service, the clock its rows are stamped with, and who listens to its events.
#[derive(Clone)]
pub struct Db {
    pub(crate) pool: Pool,
    probe: Probe,
    schema: &'static str,
    pooler: bool,
    pub(crate) clock: Clock,
    pub(crate) listeners: Arc<[Listener]>,
    pub(crate) wake: Arc<Wake>,
}

impl Db {
    /// Opens a pool whose connections work in `schema`. Connections are made when they are first needed.
    pub fn open<'a>(
        address: impl Into<Address<'a>>,
        schema: &'static str,
        size: u32,
        clock: Clock,
        listeners: Vec<Listener>,
    ) -> Result<Self, String> {
        let Address { url, pooler } = address.into();
        let plain = plain_options(url, schema).map_err(
            |_| "DATABASE_URL is not usable: it must look like postgres://user:password@host:port/database",
        )?;
        // A pooler refuses this one too, which only concerns numbers as text.
        let options = if pooler { plain.extra_float_digits(None) } else { in_schema(plain, schema) };
        // A name of its own: it is one connection more than the pool has.
        let probe = Probe::new(options.clone().application_name(&format!("{schema} readiness")));
        let options = if pooler { options } else { options.options(LIMITS) };
        let check_timeout = pooler.then_some(ACQUIRE_TIMEOUT);
        let pool = Pool::new(options, size, ACQUIRE_TIMEOUT, check_timeout);
        let (listeners, wake) = (listeners.into(), Arc::default());
        Ok(Self { pool, probe, schema, pooler, clock, listeners, wake })
    }

    /// Whether sessions come out as they are needed; the error says what to do. A database that is away may come yet.
    pub async fn check(&self) -> Result<(), String> {
        let read = self.read(async |connection| Ok(SessionSettings::read(connection).await?)).await;
        let session = match read {
            Ok(session) => session,
            Err(Error::Database(sqlx::Error::InvalidArgument(reason))) => return Err(reason),
            Err(_) => return Ok(()),
        };
        let missing = session.missing(self.schema, self.pooler);
        missing.map_or(Ok(()), |Missing { saw, advice }| Err(format!("{saw}. {advice}")))
    }

    /// Reads: `query` gets a connection, which goes back to the pool as soon as it has succeeded; after a failure it is
    /// inspected first. Business data is written through [`Db::write`], bookkeeping through [`Db::autocommit`].
    pub async fn read<T, E, F>(&self, query: F) -> Result<T, E>
    where
        E: From<Error>,
        F: AsyncFnOnce(&mut PgConnection) -> Result<T, E>,
    {
        let mut connection = self.acquire().await?;
        let found = query(&mut connection).await?;
        connection.done();
        Ok(found)
    }

    /// Runs statements that each commit by themselves, of bookkeeping that belongs to no business write: leases,
    /// wake-ups, limits, when a key was used last.
    pub async fn autocommit<T, E, F>(&self, statements: F) -> Result<T, E>
    where
        E: From<Error>,
        F: AsyncFnOnce(&mut PgConnection) -> Result<T, E>,
    {
        self.read(statements).await
    }

    /// A connection for what is more than one read, and for who has to know whether it was the connection that failed.
    /// To be given back with [`Connection::done`].
    pub async fn acquire(&self) -> Result<Connection, Error> {
        Ok(self.pool.acquire(Purpose::present()).await?)
    }

    /// An account with its settings, if this service was told of it.
    pub async fn account(&self, id: AccountId) -> Result<Option<Account>, Error> {
        self.read(async |connection| Ok(account::find(connection, &[id]).await?.remove(&id))).await
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Who gets the service's events.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Whom commits are told to.
    pub fn wake(&self) -> &Wake {
        &self.wake
    }

    /// Whether a pooler is in between.
    pub fn is_pooled(&self) -> bool {
        self.pooler
    }

    /// Whether the database answers, however busy the pool is.
    pub async fn ping(&self) -> Result<(), Unreachable> {
        self.probe.ask().await
    }

    pub async fn close(&self) {
        self.pool.close().await;
        self.probe.close();
    }
}
