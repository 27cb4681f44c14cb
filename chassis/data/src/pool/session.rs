//! One connection to the server, how it is made, and the proof that it can be handed on.

use std::time::{Duration, Instant};

use chassis_base::error::node;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};

use crate::pooler::explain;

/// How long a connection that was proven clean is handed on without another proof.
const TRUSTED_FOR: Duration = Duration::from_secs(1);
/// How long a proof may take. A server that answers at all answers this at once.
pub(super) const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// How long one attempt to connect may take, a server that accepts and then says nothing included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Sessions collect memory in the server; also they spread over servers that have come since.
const MAX_AGE: Duration = Duration::from_mins(30);
/// Others can use what nobody here has needed for so long: a server has connections for all processes together.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

pub(super) struct Session {
    pub connection: PgConnection,
    made: Instant,
    /// When it was last known to answer, outside a transaction.
    proven: Instant,
}

/// What a look at a session has found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It answers, and is outside a transaction.
    Clean,
    /// It answers, or might, but cannot be handed on.
    Unclean,
    /// The connection is gone.
    Lost,
}

impl Session {
    pub(super) async fn connect(options: &PgConnectOptions, until: Instant) -> Result<Self, sqlx::Error> {
        let left = until.saturating_duration_since(Instant::now());
        let connecting = tokio::time::timeout(CONNECT_TIMEOUT.min(left), PgConnection::connect_with(options));
        let connection = connecting.await.map_err(|_| sqlx::Error::PoolTimedOut)?.map_err(explain)?;
        Ok(Self { connection, made: Instant::now(), proven: Instant::now() })
    }

    /// The last statement was answered, outside a transaction.
    pub(super) fn proven(&mut self) {
        self.proven = Instant::now();
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.proven.elapsed() < TRUSTED_FOR
    }

    /// When it was last of use.
    pub(super) fn used(&self) -> Instant {
        self.proven
    }

    pub(super) fn is_old(&self) -> bool {
        self.made.elapsed() >= MAX_AGE
    }

    /// Reads what is left of the last statement's answer, and asks whether the session is outside a transaction. As a
    /// statement of the simple protocol is the beginning of its own transaction, its time is that of the transaction.
    /// Behind a pooler too: there a transaction that is open has its own session, and else any session answers.
    pub(super) async fn check(&mut self, check_timeout: Duration) -> Found {
        let asking = sqlx::raw_sql("select now() = statement_timestamp()").fetch_one(&mut self.connection);
        let outside = match tokio::time::timeout(check_timeout, asking).await {
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

    /// Ends the transaction that the session is in.
    pub(super) async fn roll_back(&mut self) -> Found {
        let ending = sqlx::raw_sql("ROLLBACK").execute(&mut self.connection);
        match tokio::time::timeout(CHECK_TIMEOUT, ending).await {
            Ok(Ok(_)) => {
                self.proven();
                Found::Clean
            }
            Ok(Err(error)) if is_lost(&error) => Found::Lost,
            Ok(Err(_)) | Err(_) => Found::Unclean,
        }
    }

    /// Tells the server; one that is just dropped leaves it to find out.
    pub(super) async fn close(self) {
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.connection.close()).await;
    }
}

/// Whether the connection, and not just a statement, has failed.
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

/// Whether connecting may succeed in a moment: the server is away, starting, stopping or full.
pub(super) fn may_pass(error: &sqlx::Error) -> bool {
    let full = matches!(error, sqlx::Error::Database(error) if error.code().as_deref() == Some("53300"));
    full || is_lost(error) || matches!(error, sqlx::Error::PoolTimedOut)
}

pub(super) async fn close_all(sessions: Vec<Session>) {
    futures::future::join_all(sessions.into_iter().map(Session::close)).await;
}
