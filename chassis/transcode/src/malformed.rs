//! The error of a body or a form that cannot be parsed.

/// The error of a request that cannot be parsed at all, as opposed to one with faults in its values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Malformed {
    /// For the integrator: what was found, and where parsing stopped.
    pub detail: String,
}

impl Malformed {
    pub(crate) fn new(detail: impl Into<String>) -> Self {
        Self { detail: detail.into() }
    }
}
