//! What can go wrong here, and the one table from it to the errors of the mesh.

use proto::api::Problem;
use tonic::Status;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Names what was looked for.
    #[error("there is no such {0} in this account")]
    NotFound(&'static str),
    /// Says which status there is and what to do.
    #[error("{0}")]
    WrongStatus(String),
    #[error("the file has more than {0} bytes")]
    TooLarge(usize),
    #[error(transparent)]
    Chassis(#[from] chassis::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Chassis(error.into())
    }
}

impl From<Error> for chassis::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(what) => Self::not_found(what),
            Error::WrongStatus(detail) => Self::problem(Problem::WrongStatus, detail),
            Error::TooLarge(most) => {
                Self::problem(Problem::TooLarge, format!("A file can have {most} bytes at most."))
            }
            Error::Chassis(error) => error,
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        chassis::Error::from(error).into()
    }
}
