//! The one error type of the mesh. A service keeps an enum of its own and converts it into this one; causes are logged
//! once and never sent.
//!
//! [`Error`] becomes a gRPC status in [`status`] and takes in what the database says in [`database`]. Both are here, behind
//! the features `grpc` and `sqlx`, because a conversion can only be written beside one of its types; without the features
//! this crate knows neither library.

#[cfg(feature = "sqlx")]
pub mod database;
#[cfg(feature = "sqlx")]
pub mod node;
#[cfg(feature = "grpc")]
pub mod status;

use proto::Faults;
use proto::api::Problem;

/// The record that a transaction was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRef {
    pub kind: String,
    pub id: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request itself is at fault; every fault is in it.
    #[error("the request is not valid")]
    Invalid(Faults),
    /// A problem of the contract, with what the caller should know.
    #[error("{detail}")]
    Problem { problem: Problem, detail: String, metadata: Vec<(&'static str, String)> },
    #[cfg(feature = "sqlx")]
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
    /// Another service answered with an error; passed on as it is.
    #[cfg(feature = "grpc")]
    #[error("a call to another service failed")]
    Peer(#[source] Box<tonic::Status>),
    /// Background work whose partition now belongs to another process; that one does the work.
    #[error("the lease on this work has passed to another process")]
    LeaseLost,
    /// Someone else was faster; the transaction is run again.
    #[error("another transaction was faster")]
    Raced,
    /// The connection was lost while a transaction was committed: it may have happened, to this record.
    #[error("it is not known whether the transaction was committed")]
    InDoubt(Option<RecordRef>),
    /// Everything that should not happen.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    pub fn problem(problem: Problem, detail: impl Into<String>) -> Self {
        Self::Problem { problem, detail: detail.into(), metadata: Vec::new() }
    }

    pub fn not_found(what: &str) -> Self {
        Self::problem(Problem::NotFound, format!("There is no such {what} in this account."))
    }

    /// Adds a value that the caller finds in `data` of the error body.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let Self::Problem { metadata, .. } = &mut self {
            metadata.push((name, value.into()));
        }
        self
    }
}

impl From<Faults> for Error {
    fn from(faults: Faults) -> Self {
        Self::Invalid(faults)
    }
}

/// An error with everything that caused it, for the operator.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
