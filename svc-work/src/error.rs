//! The errors of this service, and the one table from them to the errors that callers see.

use proto::api::Problem;
use tonic::Status;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Holds the kind of record that was not found.
    #[error("there is no such {0} in this account")]
    NotFound(&'static str),
    /// Says which status the record has and what to do.
    #[error("{0}")]
    WrongStatus(String),
    #[error("the file has more than {0} bytes")]
    TooLarge(usize),
    #[error(transparent)]
    Chassis(#[from] chassis_base::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Chassis(error.into())
    }
}

impl From<Error> for chassis_base::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(what) => Self::not_found(what),
            Error::WrongStatus(detail) => Self::problem(Problem::WrongStatus, detail),
            Error::TooLarge(max) => {
                Self::problem(Problem::TooLarge, format!("A file can have {max} bytes at most."))
            }
            Error::Chassis(error) => error,
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        chassis_base::Error::from(error).into()
    }
}
