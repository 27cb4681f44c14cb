//! The errors of this service, and the one table from them to the errors of the mesh.

use chassis_base::error::database::violated_constraint;
use proto::api::Problem;
use uuid::Uuid;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// `holder` is the record that has the external id.
    #[error("the external id is in use")]
    ExternalIdTaken { holder: Uuid },
    #[error("the key is in use")]
    KeyTaken,
    #[error(transparent)]
    Chassis(#[from] chassis_base::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match violated_constraint(&error) {
            Some("custom_field_key") => Self::KeyTaken,
            _ => Self::Chassis(error.into()),
        }
    }
}

impl From<Error> for chassis_base::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(what) => Self::not_found(what),
            Error::ExternalIdTaken { holder } => {
                let detail =
                    "Another record already has this external_id. Choose another, or change that record.";
                Self::problem(Problem::ExternalIdTaken, detail).with("id", holder.to_string())
            }
            Error::KeyTaken => {
                let detail = "This entity already has a custom field with this key. Choose another key.";
                Self::problem(Problem::KeyTaken, detail)
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
