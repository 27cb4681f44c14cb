//! The errors of this service, and the one table from them to the errors of the mesh.

use chassis_base::error::database::violated_constraint;
use proto::api::{Problem, Referrers};
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
    #[error("other records refer to it")]
    InUse(Vec<Referrers>),
    #[error("the client was anonymised")]
    Anonymized,
    #[error(transparent)]
    Chassis(#[from] chassis_base::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match violated_constraint(&error) {
            Some("custom_field_key") => Self::KeyTaken,
            // One of the clients of a link was deleted since it was read.
            Some("link_company" | "link_client") => Self::Chassis(chassis_base::Error::Raced),
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
            Error::InUse(referrers) => in_use(&referrers),
            Error::Anonymized => {
                let detail = "The client was anonymised. It cannot be changed any more.";
                Self::problem(Problem::Anonymized, detail)
            }
            Error::Chassis(error) => error,
        }
    }
}

/// Names what refers to a record: how many of each kind, and a few of them.
fn in_use(referrers: &[Referrers]) -> chassis_base::Error {
    let named: Vec<String> = referrers.iter().map(|it| format!("{} ({})", it.kind, it.count)).collect();
    let detail = format!("These refer to it: {}. `data` names some of them.", named.join(", "));
    referrers.iter().fold(chassis_base::Error::problem(Problem::InUse, detail), |problem, it| {
        let problem = problem.with(it.kind.clone(), it.count.to_string());
        problem.with(format!("{}_ids", it.kind), it.ids.join(","))
    })
}

impl From<Error> for tonic::Status {
    fn from(error: Error) -> Self {
        chassis_base::Error::from(error).into()
    }
}
