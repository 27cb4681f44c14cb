//! The database of one service: a small pool whose connections have time limits.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chassis_base::{Account, AccountId, Clock, Error};
use chassis_rpc::export::Export;
use sqlx::PgConnection;

use crate::account;
use crate::connect::{Address, in_schema, plain_options};
use crate::list::export::{self, ExportSlots};
use crate::log::event::Listener;
use crate::log::snapshot::SharedRecords;
use crate::log::watch::Watch;
use crate::pool::{Connection, Pool, Purpose};
use crate::preparation::{Preparing, noticing};
use crate::probe::{Probe, Unreachable};
use crate::session_settings::{LIMITS, Missing, NO_JIT, SessionSettings};
use crate::wake::Wake;
use crate::write::{Numbers, Sequences, Turns};

/// How long a request waits for a free connection before it fails with a retryable error.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// The pool of a service, the clock for its timestamps, and the listeners of its events.
#[derive(Clone)]
pub struct Db {
    pub(crate) pool: Pool,
    probe: Probe,
    schema: &'static str,
    pooler: bool,
    pub(crate) clock: Clock,
    pub(crate) listeners: Arc<[Listener]>,
    pub(crate) wake: Arc<Wake>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) records: Arc<OnceLock<SharedRecords>>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) numbers: Arc<Numbers>,
    pub(crate) sequences: Arc<Sequences>,
    pub(crate) preparing: Arc<Preparing>,
    exports: Arc<ExportSlots>,
}

impl Db {
    /// Opens a pool whose connections use `schema`. Connections are opened on demand.
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
        // A pooler refuses extra_float_digits too. It only affects numbers in text format.
        let options = if pooler { plain.extra_float_digits(None) } else { in_schema(plain, schema) };
        // The probe has its own application name, because its connection is not one of the pool's.
        let probe = Probe::new(options.clone().application_name(&format!("{schema} readiness")));
        let options = if pooler { options } else { options.options(LIMITS).options([NO_JIT]) };
        let check_timeout = pooler.then_some(ACQUIRE_TIMEOUT);
        let pool = Pool::new(options, size, ACQUIRE_TIMEOUT, check_timeout);
        let (listeners, wake, watch) = (listeners.into(), Arc::default(), Arc::default());
        let (records, turns, preparing) = (Arc::default(), Arc::default(), Arc::default());
        let (numbers, sequences) = (Arc::default(), Arc::default());
        Ok(Self {
            pool,
            probe,
            schema,
            pooler,
            clock,
            listeners,
            wake,
            watch,
            records,
            turns,
            numbers,
            sequences,
            preparing,
            exports: Arc::new(ExportSlots::new(size)),
        })
    }

    /// Checks that sessions have the settings they need; the error says what to do. An unreachable database passes,
    /// because it may become available later.
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

    /// Runs a read on a pooled connection. The connection returns to the pool when `query` succeeds; after a failure it
    /// is inspected first. Business data is written through [`Db::write`], bookkeeping through [`Db::autocommit`].
    pub async fn read<T, E, F>(&self, query: F) -> Result<T, E>
    where
        E: From<Error>,
        F: AsyncFnOnce(&mut PgConnection) -> Result<T, E>,
    {
        if let Some(export) = Export::current() {
            return export::read(&self.pool, &self.exports, &export, query).await;
        }
        let mut connection = self.acquire().await?;
        let (found, noticed) = noticing(query(&mut connection)).await;
        let found = found?;
        connection.done();
        self.prepare_soon(noticed);
        Ok(found)
    }

    /// Runs statements that each commit on their own, for bookkeeping that is not part of a business write: leases,
    /// wake-ups, limits, the time a key was last used.
    pub async fn autocommit<T, E, F>(&self, statements: F) -> Result<T, E>
    where
        E: From<Error>,
        F: AsyncFnOnce(&mut PgConnection) -> Result<T, E>,
    {
        self.read(statements).await
    }

    /// Takes a connection for several reads, or for a caller that must tell a failed connection from a failed
    /// statement. Return it with [`Connection::done`].
    pub async fn acquire(&self) -> Result<Connection, Error> {
        Ok(self.pool.acquire(Purpose::present()).await?)
    }

    /// An account with its settings, if it is provisioned in this service.
    pub async fn account(&self, id: AccountId) -> Result<Option<Account>, Error> {
        self.read(async |connection| Ok(account::find(connection, &[id]).await?.remove(&id))).await
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The services that receive this service's events.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Tells which records the service has, so that a write can log them again whose versions the log has already.
    pub fn keep_records(&self, records: SharedRecords) {
        // The same ones if it is called again.
        let _ = self.records.set(records);
    }

    /// The registry of those who are notified of commits.
    pub fn wake(&self) -> &Wake {
        &self.wake
    }

    /// Whether connections go through a pooler.
    pub fn is_pooled(&self) -> bool {
        self.pooler
    }

    /// Checks that the database answers, without using a connection of the pool.
    pub async fn ping(&self) -> Result<(), Unreachable> {
        self.probe.ask().await
    }

    /// Answers those who wait for changes of the log, because the process is about to stop.
    pub fn stop_waiting(&self) {
        self.watch.stop();
    }

    pub async fn close(&self) {
        self.pool.close().await;
        self.probe.close();
    }
}
