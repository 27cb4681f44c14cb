//! What the database's errors mean: whether to try again, come back later, or blame the statement.

use super::{Error, node};

impl Error {
    /// Whether the same transaction may succeed when it is run again: serialisation failure, deadlock, or what the
    /// operation itself takes for one.
    pub fn is_repeatable(&self) -> bool {
        matches!(self, Self::Raced) || matches!(self.sql_state().as_deref(), Some("40001" | "40P01"))
    }

    /// Whether a lock was waited for in vain.
    pub fn is_lock_timeout(&self) -> bool {
        matches!(self.sql_state().as_deref(), Some("55P03"))
    }

    /// Whether a statement took longer than it may.
    pub fn is_statement_timeout(&self) -> bool {
        matches!(self.sql_state().as_deref(), Some("57014"))
    }

    /// Whether the database could not be reached or had no room: nobody's fault, and over in a moment.
    pub fn is_database_unreachable(&self) -> bool {
        match self {
            Self::Database(error) => is_unreachable(error),
            Self::InDoubt(_) => true,
            _ => false,
        }
    }

    /// Whether one node of a distributed database is away, and the others answer.
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

/// The name of the database constraint that refused a statement, for mapping it to a domain error.
pub fn violated_constraint(error: &sqlx::Error) -> Option<&str> {
    node::violated_constraint(error.as_database_error()?)
}

/// Whether it is the database that is away or full, and not the statement that is at fault.
pub(super) fn is_unreachable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_) | sqlx::Error::Tls(_) => {
            true
        }
        // A server that is starting, stopping or full; a pooler that has lost one, or waited in vain for one.
        _ => {
            node::is_unreachable(error)
                || matches!(
                    error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref(),
                    Some("57P01" | "57P02" | "57P03" | "53300" | "08006" | "08P01" | "25P03")
                )
        }
    }
}

/// Whether to repeat the request in a moment: a lock or a statement timed out, a transaction lost its race again and
/// again, or the database is away.
#[cfg(feature = "grpc")]
pub(super) fn is_temporary(error: &sqlx::Error) -> bool {
    let state = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    matches!(state.as_deref(), Some("55P03" | "57014" | "40001" | "40P01")) || is_unreachable(error)
}
