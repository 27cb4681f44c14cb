//! The errors of this service, and the one table from them to the errors that callers see.

use chassis_base::error::database::violated_constraint;
use proto::api::Problem;
use tonic::Status;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Holds the kind of record that was not found.
    #[error("there is no such {0} in this account")]
    NotFound(&'static str),
    /// A pipeline or phase that has deals cannot be removed.
    #[error("the {0} has deals")]
    HasDeals(&'static str),
    /// The last pipeline of an account, and the last phase of a pipeline, cannot be removed.
    #[error("the {0} is the last one")]
    IsLast(&'static str),
    #[error(transparent)]
    Chassis(#[from] chassis_base::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match violated_constraint(&error) {
            // A phase was removed while a deal moved into it. The transaction runs again, and finds either that the
            // phase does not exist or that it has a deal.
            Some("deal_phase") => Self::Chassis(chassis_base::Error::Raced),
            _ => Self::Chassis(error.into()),
        }
    }
}

impl From<Error> for chassis_base::Error {
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
        chassis_base::Error::from(error).into()
    }
}
