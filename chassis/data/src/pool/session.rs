//! One connection to the server: how it is opened, and how it is checked before it is reused.

use std::time::{Duration, Instant};

use chassis_base::error::node;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};

use crate::pooler::explain;

/// How long after a successful check a connection is reused without another one.
const TRUSTED_FOR: Duration = Duration::from_secs(1);
/// How long a check may take. A server that works answers it immediately.
pub(super) const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// How long one attempt to connect may take, including to a server that accepts and then stays silent.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Sessions are replaced at this age: they accumulate memory in the server, and new ones spread over new servers.
const MAX_AGE: Duration = Duration::from_mins(30);
/// How long an idle session is kept. All processes share the connections of the server.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

pub(super) struct Session {
    pub connection: PgConnection,
    made: Instant,
    /// When the session last answered outside a transaction.
    proven: Instant,
}

/// The result of a check of a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The session answers and is outside a transaction.
    Clean,
    /// The session may still answer, but cannot be reused.
    Unclean,
    Lost,
}

impl Session {
    pub(super) async fn connect(options: &PgConnectOptions, until: Instant) -> Result<Self, sqlx::Error> {
        let left = until.saturating_duration_since(Instant::now());
        let connecting = tokio::time::timeout(CONNECT_TIMEOUT.min(left), PgConnection::connect_with(options));
        let connection = connecting.await.map_err(|_| sqlx::Error::PoolTimedOut)?.map_err(explain)?;
        Ok(Self { connection, made: Instant::now(), proven: Instant::now() })
    }

    /// Notes that the session has just answered outside a transaction.
    pub(super) fn proven(&mut self) {
        self.proven = Instant::now();
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.proven.elapsed() < TRUSTED_FOR
    }

    pub(super) fn used(&self) -> Instant {
        self.proven
    }

    pub(super) fn is_old(&self) -> bool {
        self.made.elapsed() >= MAX_AGE
    }

    /// Reads the rest of the last statement's answer and checks that the session is outside a transaction. Outside
    /// one, a statement of the simple protocol begins its own transaction, so its time equals that of the
    /// transaction. This also works behind a pooler: an open transaction keeps its server session, and otherwise any
    /// session may answer.
    pub(super) async fn check(&mut self, check_timeout: Duration) -> Found {
        let query = sqlx::raw_sql("select now() = statement_timestamp()").fetch_one(&mut self.connection);
        let outside = match tokio::time::timeout(check_timeout, query).await {
            Ok(Ok(row)) => sqlx::Row::try_get::<bool, _>(&row, 0).unwrap_or(false),
            Ok(Err(error)) if is_lost(&error) => return Found::Lost,
            Ok(Err(_)) | Err(_) => false,
        };
        if !outside {
            return Found::Unclean;
        }
        self.proven();
        Found::Clean
    }

    pub(super) async fn roll_back(&mut self) -> Found {
        let rollback = sqlx::raw_sql("ROLLBACK").execute(&mut self.connection);
        match tokio::time::timeout(CHECK_TIMEOUT, rollback).await {
            Ok(Ok(_)) => {
                self.proven();
                Found::Clean
            }
            Ok(Err(error)) if is_lost(&error) => Found::Lost,
            Ok(Err(_)) | Err(_) => Found::Unclean,
        }
    }

    /// Closes the session properly; after a mere drop the server has to notice by itself.
    pub(super) async fn close(self) {
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.connection.close()).await;
    }
}

/// Whether the connection has failed, and not just a statement.
pub(super) fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(of_server) => {
            let ends = of_server.code().is_some_and(|code| code.starts_with("57P") || code.starts_with("08"));
            ends && !node::is_unreachable(error)
        }
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => {
            true
        }
        _ => false,
    }
}

/// Whether connecting may succeed in a moment: the server is unreachable, starting, stopping or full.
pub(super) fn may_pass(error: &sqlx::Error) -> bool {
    let full = matches!(error, sqlx::Error::Database(error) if error.code().as_deref() == Some("53300"));
    full || is_lost(error) || matches!(error, sqlx::Error::PoolTimedOut)
}

pub(super) async fn close_all(sessions: Vec<Session>) {
    futures::future::join_all(sessions.into_iter().map(Session::close)).await;
}
