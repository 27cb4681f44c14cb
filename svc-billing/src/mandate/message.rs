//! A mandate as a message of the contract. A file of its own because the message needs the rules for its status, which use
//! the types of `mod.rs`.

use chassis_base::time::timestamp;
use proto::billing::{ActivationStatus, Mandate, MandateMeta, MandateStatus, SubscriptionActivation};

use super::{Debtor, rules};
use crate::online_payment::{OnlinePayment, Status};

/// A client with its mandate and its latest verification, from which the public status of the mandate follows.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientMandate {
    pub client_found: bool,
    pub debtor: Option<Debtor>,
    pub verification: Option<OnlinePayment>,
}

impl ClientMandate {
    pub(crate) fn status(&self) -> MandateStatus {
        rules::status(self.debtor.as_ref(), self.verification())
    }

    /// The mandate as a message.
    pub(crate) fn message(&self, provider: &str, activation: ActivationStatus) -> Mandate {
        let mandate = message(self.debtor.as_ref(), self.verification(), provider, activation);
        Mandate { client_found: self.client_found, ..mandate }
    }

    fn verification(&self) -> Option<Status> {
        self.verification.as_ref().map(|payment| payment.status)
    }
}

/// A stored mandate as a request without a subscription shows it, as long as its provider is the one in use.
pub(super) fn stored(debtor: &Debtor, verification: Option<Status>) -> Mandate {
    message(Some(debtor), verification, &debtor.provider, ActivationStatus::Skipped)
}

/// The mandate of a client that exists.
fn message(
    debtor: Option<&Debtor>,
    verification: Option<Status>,
    provider: &str,
    activation: ActivationStatus,
) -> Mandate {
    let status = rules::status(debtor, verification);
    let authorized = rules::is_authorized(status);
    let text = |of: fn(&Debtor) -> &String| debtor.map(of).cloned().unwrap_or_default();
    let mandate_id = text(|debtor| &debtor.mandate_id);
    Mandate {
        client_found: true,
        provider: provider.to_owned(),
        mandate_present: !mandate_id.is_empty(),
        mandate_authorized: authorized,
        direct_debit_enabled: i32::from(authorized),
        mandate_status: status.into(),
        customer_id: text(|debtor| &debtor.customer_id),
        mandate_id,
        can_activate_subscription: authorized,
        subscription_activation: Some(SubscriptionActivation { status: activation.into() }),
        meta: Some(MandateMeta {
            verification_status: verification.map(|status| status.name().to_owned()),
            verified_at: debtor.and_then(|debtor| debtor.verified_at).map(timestamp),
            authorized_at: debtor.and_then(|debtor| debtor.authorized_at).map(timestamp),
            activated_at: debtor.and_then(|debtor| debtor.activated_at).map(timestamp),
            version: debtor.map_or(0, |debtor| debtor.version),
            updated_at: debtor.map(|debtor| timestamp(debtor.updated_at)),
        }),
    }
}
