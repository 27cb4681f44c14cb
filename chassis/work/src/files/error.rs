//! The errors that callers get when files are unavailable.

use chassis_base::Error;
use chassis_base::error::chain;
use proto::api::Problem;

pub(super) fn unreachable(error: &(dyn std::error::Error + 'static)) -> Error {
    tracing::error!(error = chain(error), "the file storage is unreachable");
    unavailable()
}

pub(super) fn busy() -> Error {
    Error::problem(Problem::Unavailable, "Too many files are on their way. Repeat the request in a moment.")
}

pub(super) fn unavailable() -> Error {
    Error::problem(
        Problem::Unavailable,
        "The files cannot be reached at the moment. Repeat the request in a moment.",
    )
}
