//! How connections are made: by the pool, and by commands, which have one of their own.

use std::str::FromStr;

use chassis_base::Error;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection as _};

use crate::pooler::explain;
use crate::session_settings::{LIMITS, SessionSettings};

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

pub(crate) fn plain_options(url: &str, schema: &str) -> Result<PgConnectOptions, Error> {
    Ok(PgConnectOptions::from_str(url)?
        .application_name(schema)
        .statement_cache_capacity(256)
        // What a statement was slow with may be personal data; the statement's own time limit bounds it.
        .disable_statement_logging())
}

pub(crate) fn in_schema(options: PgConnectOptions, schema: &str) -> PgConnectOptions {
    // `public` holds the extensions' operators.
    options.options([("search_path", format!("{schema},public"))])
}

/// A connection for a command: without a pool, and without limits on how long it takes, whatever the role has. It is a
/// session of its own, so a pooler must not be in between.
pub async fn connect(url: &str, schema: &str) -> Result<sqlx::PgConnection, Error> {
    let options = in_schema(plain_options(url, schema)?, schema).options(LIMITS.map(|(name, _)| (name, "0")));
    let mut connection = sqlx::PgConnection::connect_with(&options).await.map_err(explain)?;
    if !SessionSettings::read(&mut connection).await?.is_as_asked(schema) {
        return Err(Error::Internal(
            "something between here and PostgreSQL drops what a connection asks for: this command needs a session of \
             its own, so let DATABASE_URL name the database itself and not a pooler"
                .to_owned(),
        ));
    }
    Ok(connection)
}
