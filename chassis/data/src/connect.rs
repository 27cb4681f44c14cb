//! Connection options of the pool, and the single connection that a command uses.

use std::str::FromStr;

use chassis_base::Error;
use futures::future::BoxFuture;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection as _};

use crate::pooler::explain;
use crate::session_settings::{LIMITS, SessionSettings};

/// The address of the database, and whether a pooler is in front of it.
#[derive(Clone, Copy)]
pub struct Address<'a> {
    pub url: &'a str,
    /// A pooler in transaction mode is in front. It does not pass startup parameters on to the server.
    pub pooler: bool,
}

impl<'a> From<&'a str> for Address<'a> {
    fn from(url: &'a str) -> Self {
        Self { url, pooler: false }
    }
}

pub(crate) fn plain_options(url: &str, schema: &str) -> Result<PgConnectOptions, Error> {
    Ok(PgConnectOptions::from_str(url)?
        .application_name(schema)
        .statement_cache_capacity(256)
        // Logs of slow statements may contain personal data; statement_timeout bounds statements anyway.
        .disable_statement_logging())
}

pub(crate) fn in_schema(options: PgConnectOptions, schema: &str) -> PgConnectOptions {
    // The operators of extensions are in `public`.
    options.options([("search_path", format!("{schema},public"))])
}

/// Opens a connection for a command: outside the pool and without time limits, whatever the role has. A
/// command needs its own session, so it cannot connect through a pooler. Boxed, as the futures of [`pool`](crate::pool).
pub fn connect<'a>(url: &'a str, schema: &'a str) -> BoxFuture<'a, Result<sqlx::PgConnection, Error>> {
    Box::pin(open(url, schema))
}

async fn open(url: &str, schema: &str) -> Result<sqlx::PgConnection, Error> {
    let options = in_schema(plain_options(url, schema)?, schema).options(LIMITS.map(|(name, _)| (name, "0")));
    let mut connection = sqlx::PgConnection::connect_with(&options).await.map_err(explain)?;
    if !SessionSettings::read(&mut connection).await?.is_as_asked(schema) {
        return Err(Error::Internal(
            "a pooler or proxy in front of PostgreSQL drops the startup parameters of connections: this command needs \
             its own session, so let DATABASE_URL name the database itself and not a pooler"
                .to_owned(),
        ));
    }
    Ok(connection)
}
