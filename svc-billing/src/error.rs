//! What can go wrong here, and the one table from it to the errors of the mesh.

use chassis::error::violated_constraint;
use proto::api::Problem;
use uuid::Uuid;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// `holder` is the product that has it, unless that was lost in a race and not looked up.
    #[error("the code is in use")]
    CodeTaken { holder: Option<Uuid> },
    /// What is the default cannot be removed.
    #[error("the {0} is the default")]
    InUse(&'static str),
    #[error(transparent)]
    Chassis(#[from] chassis::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match violated_constraint(&error) {
            Some("product_code") => Self::CodeTaken { holder: None },
            _ => Self::Chassis(error.into()),
        }
    }
}

impl From<Error> for chassis::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(what) => Self::not_found(what),
            Error::CodeTaken { holder } => {
                let detail = "Another product already has this code. Choose another, or change that product.";
                let problem = Self::problem(Problem::CodeTaken, detail);
                holder.iter().fold(problem, |problem, id| problem.with("id", id.to_string()))
            }
            Error::InUse(what) => {
                let detail = format!("This {what} is the default. Make another one the default first.");
                Self::problem(Problem::InUse, detail)
            }
            Error::Chassis(error) => error,
        }
    }
}

impl From<Error> for tonic::Status {
    fn from(error: Error) -> Self {
        chassis::Error::from(error).into()
    }
}
