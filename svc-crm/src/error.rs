//! What can go wrong here, and the one table from it to the errors of the mesh.

use chassis::error::violated_constraint;
use proto::api::Problem;
use tonic::Status;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Names what was looked for.
    #[error("there is no such {0} in this account")]
    NotFound(&'static str),
    /// What has deals cannot be removed.
    #[error("the {0} has deals")]
    HasDeals(&'static str),
    /// What there must always be one of.
    #[error("the {0} is the last one")]
    IsLast(&'static str),
    #[error(transparent)]
    Chassis(#[from] chassis::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match violated_constraint(&error) {
            // A phase was removed just when a deal went there; a second look finds it gone, or the deal in it.
            Some("deal_phase") => Self::Chassis(chassis::Error::Raced),
            _ => Self::Chassis(error.into()),
        }
    }
}

impl From<Error> for chassis::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(what) => Self::not_found(what),
            Error::HasDeals(what) => {
                let detail = format!("This {what} has deals. Move them to another one or delete them first.");
                Self::problem(Problem::InUse, detail)
            }
            Error::IsLast(what) => {
                Self::problem(Problem::InUse, format!("This is the last {what}. Add another one first."))
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
