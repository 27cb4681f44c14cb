//! What begins a write transaction, and so who is behind it in the audit log.

use chassis_rpc::Context;
use proto::Faults;

use crate::idempotency::Fingerprint;
use crate::lease::Lease;

/// What begins a transaction.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// A mutating rpc. It has a fingerprint if it has an idempotency key.
    Call { context: &'a Context, faults: &'a Faults, fingerprint: Option<&'a Fingerprint> },
    /// The second transaction of a call, for what is only known after the first has committed.
    Amendment { context: &'a Context },
    /// Background work under its lease.
    Work { lease: &'a Lease },
    /// The service itself, which found something out on the way.
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

    /// Who did it, as the audit log says it.
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

    /// What was called, as the audit log says it.
    pub(crate) fn method(self) -> String {
        match self {
            Self::Call { context, .. } | Self::Amendment { context } => context.rpc.to_owned(),
            Self::Work { lease } => format!("worker:{}", lease.worker()),
            Self::Service => "note".to_owned(),
        }
    }
}
