//! Where a call failed: before it was sent, in transport, or in the service.

use tonic::{ConnectError, Status};

/// Whether the call failed before it was sent, so that it had no effect.
pub fn was_not_sent(status: &Status) -> bool {
    let causes = std::iter::successors(std::error::Error::source(status), |cause| cause.source());
    causes.into_iter().any(<dyn std::error::Error>::is::<ConnectError>)
}

/// Whether the call failed in transport and not in the service.
pub fn is_transport(status: &Status) -> bool {
    status.details().is_empty() && std::error::Error::source(status).is_some()
}
