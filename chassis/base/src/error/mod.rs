//! The error type that all services share. A service has its own enum and converts it into this one; causes are logged
//! once and never sent.
//!
//! [`status`] converts [`Error`] into a gRPC status, and [`database`] classifies errors of the database. Both are here,
//! behind the features `grpc` and `sqlx`, because a conversion must be in the crate of one of its types. Without the
//! features this crate depends on neither library.

#[cfg(feature = "sqlx")]
pub mod database;
#[cfg(feature = "sqlx")]
pub mod node;
#[cfg(feature = "grpc")]
pub mod status;

use std::borrow::Cow;

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
    /// The request is not valid. Contains all of its faults.
    #[error("the request is not valid")]
    Invalid(Faults),
    /// A problem of the contract, with details for the caller.
    #[error("{detail}")]
    Problem { problem: Problem, detail: String, metadata: Vec<(Cow<'static, str>, String)> },
    #[cfg(feature = "sqlx")]
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
    /// Another service returned an error, which is passed on unchanged.
    #[cfg(feature = "grpc")]
    #[error("a call to another service failed")]
    Peer(#[source] Box<tonic::Status>),
    /// The partition of this background work now belongs to another process, which does the work.
    #[error("the lease on this work has passed to another process")]
    LeaseLost,
    /// A concurrent transaction was faster; this one is run again.
    #[error("another transaction was faster")]
    Raced,
    /// The connection was lost during a commit, which may have succeeded. Names the record that it changes.
    #[error("it is not known whether the transaction was committed")]
    InDoubt(Option<RecordRef>),
    /// A defect.
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

    /// Adds a value to `data` of the error body.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        if let Self::Problem { metadata, .. } = &mut self {
            metadata.push((name.into(), value.into()));
        }
        self
    }
}

impl From<Faults> for Error {
    fn from(faults: Faults) -> Self {
        Self::Invalid(faults)
    }
}

/// The text of an error with all of its sources, for operators.
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
