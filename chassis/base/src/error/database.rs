//! Classifies database errors: repeat the transaction, retry later, or a faulty statement.

use super::{Error, node};

impl Error {
    /// Whether the same transaction may succeed when it is run again: a serialisation failure, a deadlock, or a race
    /// that the operation itself has detected.
    pub fn is_repeatable(&self) -> bool {
        matches!(self, Self::Raced) || matches!(self.sql_state().as_deref(), Some("40001" | "40P01"))
    }

    /// Whether waiting for a lock timed out.
    pub fn is_lock_timeout(&self) -> bool {
        matches!(self.sql_state().as_deref(), Some("55P03"))
    }

    /// Whether a statement exceeded its time limit.
    pub fn is_statement_timeout(&self) -> bool {
        matches!(self.sql_state().as_deref(), Some("57014"))
    }

    /// Whether the database was unreachable or full, which is temporary and not the fault of the request.
    pub fn is_database_unreachable(&self) -> bool {
        match self {
            Self::Database(error) => is_unreachable(error),
            Self::InDoubt(_) => true,
            _ => false,
        }
    }

    /// Whether one node of a distributed database is unreachable while the server itself answers.
    pub fn is_node_unreachable(&self) -> bool {
        matches!(self, Self::Database(error) if node::is_unreachable(error))
    }

    fn sql_state(&self) -> Option<String> {
        match self {
            Self::Database(error) => error.as_database_error()?.code().map(std::borrow::Cow::into_owned),
            _ => None,
        }
    }
}

/// The name of the violated database constraint, which services map to a domain error.
pub fn violated_constraint(error: &sqlx::Error) -> Option<&str> {
    node::violated_constraint(error.as_database_error()?)
}

/// Whether a constraint of the schema refused the statement.
pub fn is_integrity_violation(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.code().is_some_and(|code| code.starts_with("23")))
}

/// Whether a row of this table lacks a value that it must have.
pub fn is_null_in(error: &sqlx::Error, table: &str) -> bool {
    error.as_database_error().and_then(node::table_with_null) == Some(table)
}

/// Whether another row has a value that must be unique.
pub fn is_unique_violation(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// Whether the database is unreachable or full, as opposed to a faulty statement.
pub(super) fn is_unreachable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_) | sqlx::Error::Tls(_) => {
            true
        }
        // The server is starting, stopping or full; or a pooler has lost its server, or got no connection in time.
        _ => {
            node::is_unreachable(error)
                || matches!(
                    error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref(),
                    Some("57P01" | "57P02" | "57P03" | "53300" | "08006" | "08P01" | "25P03")
                )
        }
    }
}

/// Whether repeating the request in a moment may succeed: a lock or a statement timed out, a transaction lost every
/// attempt to a race, or the database is unreachable.
#[cfg(feature = "grpc")]
pub(super) fn is_temporary(error: &sqlx::Error) -> bool {
    let state = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    matches!(state.as_deref(), Some("55P03" | "57014" | "40001" | "40P01")) || is_unreachable(error)
}
