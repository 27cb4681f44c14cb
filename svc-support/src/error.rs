//! The errors of this service, and the one table from them to the errors of the mesh.

use chassis_base::error::database::violated_constraint;
use proto::api::Problem;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// Holds the kind of the record that has the name, for example `status`.
    #[error("another {0} has this name")]
    NameTaken(&'static str),
    #[error("tickets have this status")]
    StatusInUse,
    #[error("the domain is verified by another account")]
    DomainTaken,
    #[error("the attachment {name} has more than {max} bytes")]
    AttachmentTooLarge { name: String, max: usize },
    #[error(transparent)]
    Chassis(#[from] chassis_base::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match violated_constraint(&error) {
            Some("status_name") => Self::NameTaken("status"),
            Some("channel_email") => Self::NameTaken("channel"),
            // Another transaction stored the same mail first. When this one runs again, it finds that mail.
            Some("message_once") => Self::Chassis(chassis_base::Error::Raced),
            _ => Self::Chassis(error.into()),
        }
    }
}

impl From<Error> for chassis_base::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(what) => Self::not_found(what),
            Error::NameTaken(what) => {
                let detail =
                    format!("Another {what} of this account has this name or address. Choose another.");
                Self::problem(Problem::KeyTaken, detail)
            }
            Error::StatusInUse => {
                let detail = "The status is one of those that tickets get by themselves, or tickets have it. \
                              Deactivate it instead.";
                Self::problem(Problem::InUse, detail)
            }
            Error::DomainTaken => {
                let detail = "Another account has verified this domain. It has to give it up first.";
                Self::problem(Problem::KeyTaken, detail)
            }
            Error::AttachmentTooLarge { name, max } => {
                let detail = format!("An attachment can have {max} bytes at most; {name:?} has more.");
                Self::problem(Problem::TooLarge, detail)
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
