//! The errors of billing, and the one table that maps them to the errors of the mesh.

use chassis_base::error::database::violated_constraint;
use proto::api::Problem;
use tonic::Status;
use uuid::Uuid;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// With the name of what was looked for.
    #[error("there is no such {0} in this account")]
    NotFound(&'static str),
    #[error("the external id belongs to another record")]
    ExternalIdTaken { holder: Option<Uuid> },
    /// `holder` is the product that has the code. It is `None` when a constraint refused the statement: then the
    /// transaction was aborted before the holder could be read.
    #[error("the code is in use")]
    CodeTaken { holder: Option<Uuid> },
    /// The default cannot be deleted.
    #[error("the {0} is the default")]
    InUse(&'static str),
    #[error("the number belongs to another document")]
    NumberTaken { holder: Option<Uuid> },
    #[error("the document is final")]
    NotADraft,
    #[error("the document is a draft")]
    IsDraft,
    #[error("the draft has payments")]
    HasPayments,
    #[error("the draft has been credited")]
    HasCredits { credit: Uuid },
    /// With a sentence about what is missing.
    #[error("{0}")]
    Incomplete(String),
    #[error("a row was credited before")]
    AlreadyCredited,
    #[error("a credit cannot be credited")]
    IsCredit,
    #[error("the payment has ended")]
    PaymentFinal,
    #[error("the quote has expired")]
    Expired,
    #[error("the subscription has ended")]
    Ended,
    /// With the provider's own message.
    #[error("the payment provider refused: {0}")]
    PaymentRefused(String),
    #[error("no payment provider is set up")]
    NoProvider,
    /// With the reason.
    #[error("a message is not signed correctly: {0}")]
    BadSignature(String),
    #[error("the client has no authorised mandate")]
    NotAuthorized,
    /// With the number of the project.
    #[error("the quote has become the project {0}")]
    HasProject(String),
    #[error(transparent)]
    Chassis(#[from] chassis_base::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match violated_constraint(&error) {
            Some("product_code") => Self::CodeTaken { holder: None },
            _ => Self::Chassis(error.into()),
        }
    }
}

impl From<Error> for chassis_base::Error {
    fn from(error: Error) -> Self {
        fn problem(problem: Problem, detail: impl Into<String>) -> chassis_base::Error {
            chassis_base::Error::problem(problem, detail)
        }
        match error {
            Error::NotFound(what) => Self::not_found(what),
            Error::ExternalIdTaken { holder } => with_holder(
                problem(
                    Problem::ExternalIdTaken,
                    "Another record already has this external_id. Use another one, or change that record.",
                ),
                holder,
            ),
            Error::CodeTaken { holder } => with_holder(
                problem(
                    Problem::CodeTaken,
                    "Another product already has this code. Choose another, or change that product.",
                ),
                holder,
            ),
            Error::InUse(what) => problem(
                Problem::InUse,
                format!("This {what} is the default. Make another one the default first."),
            ),
            Error::NumberTaken { holder } => with_holder(
                problem(
                    Problem::NumberTaken,
                    "Another document of this kind already has this number. Leave number out to get the next one.",
                ),
                holder,
            ),
            Error::NotADraft => problem(
                Problem::NotADraft,
                "The document is final; only drafts can be deleted. A final invoice can be credited.",
            ),
            Error::IsDraft => problem(
                Problem::IsDraft,
                "The document is a draft; finalise it first, with POST to its path followed by /finalize.",
            ),
            Error::HasPayments => problem(Problem::HasPayments, "The draft has payments; delete them first."),
            Error::HasCredits { credit } => {
                problem(Problem::HasCredits, "The draft has been credited; delete the credit first.")
                    .with("id", credit.to_string())
            }
            Error::Incomplete(detail) => problem(Problem::Incomplete, detail),
            Error::AlreadyCredited => problem(
                Problem::AlreadyCredited,
                "A row is credited once, and these were credited before; see meta.credited_by of the invoice.",
            ),
            Error::IsCredit => {
                problem(Problem::IsCredit, "A credit invoice cannot be credited; make a new invoice instead.")
            }
            Error::PaymentFinal => problem(
                Problem::PaymentFinal,
                "This online payment has come to its end and cannot become paid; add a new payment.",
            ),
            Error::Expired => {
                problem(Problem::Expired, "This quote is no longer valid. Ask the sender for a new one.")
            }
            Error::Ended => problem(
                Problem::Ended,
                "The subscription has ended, and that is final. Make a new subscription instead.",
            ),
            Error::PaymentRefused(reason) => problem(
                Problem::PaymentRefused,
                format!("The payment provider does not make this payment: {reason}"),
            ),
            Error::NoProvider => problem(
                Problem::PaymentRefused,
                "Nothing can be paid or collected online: no payment provider is set up. Pay by bank transfer, or ask \
                 the operator to set one up.",
            ),
            Error::BadSignature(detail) => problem(Problem::BadSignature, detail),
            Error::NotAuthorized => problem(
                Problem::NotAuthorized,
                "The client has no authorised mandate. Ask for one with POST to direct-debit/verification.",
            ),
            Error::HasProject(number) => {
                problem(Problem::WrongStatus, format!("This quote has already become the project {number}."))
            }
            Error::Chassis(error) => error,
        }
    }
}

fn with_holder(error: chassis_base::Error, holder: Option<Uuid>) -> chassis_base::Error {
    match holder {
        Some(id) => error.with("id", id.to_string()),
        None => error,
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        chassis_base::Error::from(error).into()
    }
}
