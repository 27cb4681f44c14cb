//! The database of one service: a small pool with limits on every connection, and the migrations of its schema.

mod migrations;

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

pub(crate) static CHASSIS: Migrator = sqlx::migrate!("./migrations");

/// How long a request waits for a free connection before it is told to come back.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// Limits on every connection: nothing waits or runs for ever, nor on for somebody who has hung up.
const LIMITS: [(&str, &str); 4] = [
    ("statement_timeout", "10s"),
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "15s"),
    ("client_connection_check_interval", "1s"),
];

/// The pool of a service, the clock its rows are stamped with, and who listens to its events.
#[derive(Clone)]
pub struct Db {
    pub(crate) pool: Pool,
    probe: Probe,
    pub(crate) clock: Clock,
    pub(crate) listeners: Arc<[Listener]>,
    pub(crate) wake: Arc<Wake>,
}

impl Db {
    /// Opens a pool whose connections work in `schema`. Connections are made when they are first needed.
    pub fn open(
        url: &str,
        schema: &str,
        size: u32,
        clock: Clock,
        listeners: Vec<Listener>,
    ) -> Result<Self, String> {
        let options = connect_options(url, schema).map_err(
            |_| "DATABASE_URL is not usable: it must look like postgres://user:password@host:port/database",
        )?;
        // A name of its own: it is one connection more than the pool has.
        let probe = Probe::new(options.clone().application_name(&format!("{schema} readiness")));
        let pool = Pool::new(options.options(LIMITS), size, ACQUIRE_TIMEOUT);
        Ok(Self { pool, probe, clock, listeners: listeners.into(), wake: Arc::default() })
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

fn connect_options(url: &str, schema: &str) -> Result<PgConnectOptions, Error> {
    // `public` holds the extensions' operators.
    Ok(PgConnectOptions::from_str(url)?
        .application_name(schema)
        .options([("search_path", format!("{schema},public"))])
        .statement_cache_capacity(256)
        // What a statement was slow with may be personal data; the statement's own time limit bounds it.
        .disable_statement_logging())
}

/// A connection for a command: without a pool, and without limits on how long it takes.
pub(crate) async fn connect(url: &str, schema: &str) -> Result<sqlx::PgConnection, Error> {
    Ok(sqlx::PgConnection::connect_with(&connect_options(url, schema)?).await?)
}
