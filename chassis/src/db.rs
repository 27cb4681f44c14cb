//! The database of one service: a small pool with limits on every connection, and the migrations of its schema.

mod migrations;
mod pooler;

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection as _};

use crate::account::{self, Account, AccountId};
use crate::clock::Clock;
use crate::error::Error;
use crate::outbox::Listener;
use crate::pool::{Connection, Pool};
use crate::probe::{Probe, Unreachable};
use crate::scope;
use crate::worker::Wake;

pub use migrations::migrate;
pub(crate) use pooler::{Given, Lacking, explain, is_busy};

pub(crate) static CHASSIS: Migrator = sqlx::migrate!("./migrations");

/// How long a request waits for a free connection before it is told to come back.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// Limits on every connection: nothing waits or runs for ever, nor on for somebody who has hung up. Behind a pooler the
/// role has them (`deploy/k8s/roles.sql`).
pub(crate) const LIMITS: [(&str, &str); 4] = [
    ("statement_timeout", "10s"),
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "15s"),
    ("client_connection_check_interval", "1s"),
];

/// Where the database is, and what is in between.
#[derive(Clone, Copy)]
pub struct Address<'a> {
    pub url: &'a str,
    /// A pooler in transaction mode: it hands on nothing that a connection asks for at its start.
    pub pooler: bool,
}

impl<'a> From<&'a str> for Address<'a> {
    fn from(url: &'a str) -> Self {
        Self { url, pooler: false }
    }
}

/// The pool of a service, the clock its rows are stamped with, and who listens to its events.
#[derive(Clone)]
pub struct Db {
    pub(crate) pool: Pool,
    probe: Probe,
    schema: &'static str,
    pub(crate) pooler: bool,
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
        let patience = pooler.then_some(ACQUIRE_TIMEOUT);
        let pool = Pool::new(options, size, ACQUIRE_TIMEOUT, patience);
        let (listeners, wake) = (listeners.into(), Arc::default());
        Ok(Self { pool, probe, schema, pooler, clock, listeners, wake })
    }

    /// Whether sessions come out as they are needed; the error says what to do. A database that is away may come yet.
    pub async fn check(&self) -> Result<(), String> {
        let mut connection = match self.read().await {
            Ok(connection) => connection,
            Err(Error::Database(sqlx::Error::InvalidArgument(reason))) => return Err(reason),
            Err(_) => return Ok(()),
        };
        let Ok(given) = Given::read(&mut connection).await else { return Ok(()) };
        connection.done();
        let lacking = given.lacking(self.schema, self.pooler);
        lacking.map_or(Ok(()), |Lacking { saw, advice }| Err(format!("{saw}. {advice}")))
    }

    /// A connection for reading. Writing goes through [`Db::write`](crate::write).
    pub async fn read(&self) -> Result<Connection, Error> {
        Ok(self.pool.acquire(scope::purpose()).await?)
    }

    /// An account with its settings, if this service was told of it.
    pub async fn account(&self, id: AccountId) -> Result<Option<Account>, Error> {
        let mut connection = self.read().await?;
        let found = account::find(&mut connection, &[id]).await?.remove(&id);
        connection.done();
        Ok(found)
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
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

fn plain_options(url: &str, schema: &str) -> Result<PgConnectOptions, Error> {
    Ok(PgConnectOptions::from_str(url)?
        .application_name(schema)
        .statement_cache_capacity(256)
        // What a statement was slow with may be personal data; the statement's own time limit bounds it.
        .disable_statement_logging())
}

fn in_schema(options: PgConnectOptions, schema: &str) -> PgConnectOptions {
    // `public` holds the extensions' operators.
    options.options([("search_path", format!("{schema},public"))])
}

/// A connection for a command: without a pool, and without limits on how long it takes, whatever the role has. It is a
/// session of its own, so a pooler must not be in between.
pub(crate) async fn connect(url: &str, schema: &str) -> Result<sqlx::PgConnection, Error> {
    let options = in_schema(plain_options(url, schema)?, schema).options(LIMITS.map(|(name, _)| (name, "0")));
    let mut connection = sqlx::PgConnection::connect_with(&options).await.map_err(explain)?;
    if !Given::read(&mut connection).await?.is_as_asked(schema) {
        return Err(Error::Internal(
            "something between here and PostgreSQL drops what a connection asks for: this command needs a session of \
             its own, so let DATABASE_URL name the database itself and not a pooler"
                .to_owned(),
        ));
    }
    Ok(connection)
}
