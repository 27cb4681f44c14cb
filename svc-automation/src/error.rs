//! The errors of this service, and the one table from them to the errors of the mesh.

use proto::api::Problem;
use uuid::Uuid;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no such {0}")]
    NotFound(&'static str),
    #[error("the run has finished as {status}")]
    RunFinished { status: String },
    /// `needed` is the state that the operation requires.
    #[error("the run is {status}, not {needed}")]
    RunState { status: String, needed: &'static str },
    /// `holder` is the flow that has it.
    #[error("another flow has this name")]
    NameTaken { holder: Uuid },
    #[error("the account has too many webhook endpoints")]
    TooManyEndpoints,
    #[error(transparent)]
    Chassis(#[from] chassis_base::Error),
}

impl Error {
    /// An inconsistency that no caller can cause; logged, and answered as an internal error.
    pub(crate) fn internal(what: impl Into<String>) -> Self {
        chassis_base::Error::Internal(what.into()).into()
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Chassis(error.into())
    }
}

impl From<proto::Faults> for Error {
    fn from(faults: proto::Faults) -> Self {
        Self::Chassis(faults.into())
    }
}

impl From<Error> for chassis_base::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(what) => Self::not_found(what),
            Error::RunFinished { status } => {
                let detail = format!("The run has finished as {status} and cannot be cancelled any more.");
                Self::problem(Problem::RunFinished, detail).with("status", status)
            }
            Error::RunState { status, needed } => {
                let detail = format!("The run is {status}. This needs one that is {needed}.");
                Self::problem(Problem::RunState, detail).with("status", status)
            }
            Error::NameTaken { holder } => {
                let detail =
                    "Another flow has this name. Give this one another name, or replace the other one.";
                Self::problem(Problem::NameTaken, detail).with("id", holder.to_string())
            }
            Error::TooManyEndpoints => {
                let detail =
                    "The account has as many webhook endpoints as it can have. Delete one that is not used.";
                Self::problem(Problem::LimitReached, detail)
            }
            Error::Chassis(error) => error,
        }
    }
}

impl From<Error> for tonic::Status {
    fn from(error: Error) -> Self {
        chassis_base::Error::from(error).into()
    }
}
