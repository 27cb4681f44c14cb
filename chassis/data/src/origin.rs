//! What starts a write transaction, which decides the actor and the method in the log.

use chassis_rpc::Context;
use proto::Faults;

use crate::idempotency::Fingerprint;
use crate::lease::Lease;

/// What starts a write transaction.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// A mutating rpc.
    Call {
        context: &'a Context,
        faults: &'a Faults,
        /// Present if the call has an idempotency key.
        fingerprint: Option<&'a Fingerprint>,
    },
    /// The second transaction of a call, for results that exist only after the first has committed.
    Amendment { context: &'a Context },
    /// Background work under a lease.
    Work { lease: &'a Lease },
    /// The service itself, which records something that it found.
    Service,
}

impl<'a> Origin<'a> {
    /// The call that the transaction serves, if there is one.
    pub(crate) fn call(self) -> Option<&'a Context> {
        match self {
            Self::Call { context, .. } | Self::Amendment { context } => Some(context),
            Self::Work { .. } | Self::Service => None,
        }
    }

    /// The fingerprint of a call with an idempotency key.
    pub(crate) fn fingerprint(self) -> Option<&'a [u8]> {
        match self {
            Self::Call { fingerprint, .. } => fingerprint.map(<[u8; 32]>::as_slice),
            Self::Amendment { .. } | Self::Work { .. } | Self::Service => None,
        }
    }

    /// The actor in the log.
    pub(crate) fn actor(self) -> &'a str {
        match self {
            Self::Call { context, .. } | Self::Amendment { context } => &context.identity.actor,
            Self::Work { .. } => "worker",
            Self::Service => "service",
        }
    }

    pub(crate) fn request_id(self) -> &'a str {
        self.call().map_or("", |context| &context.request_id)
    }

    /// The method in the log.
    pub(crate) fn method(self) -> String {
        match self {
            Self::Call { context, .. } | Self::Amendment { context } => context.rpc.to_owned(),
            Self::Work { lease } => format!("worker:{}", lease.worker()),
            Self::Service => "note".to_owned(),
        }
    }
}
