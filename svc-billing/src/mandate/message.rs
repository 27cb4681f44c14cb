//! A mandate as a message of the contract. A file of its own because the message needs the rules for its status, which use
//! the types of `mod.rs`.

use chassis_base::time::timestamp;
use proto::billing::{ActivationStatus, Mandate, MandateMeta, MandateStatus, SubscriptionActivation};

use super::{Debtor, rules};
use crate::online_payment::OnlinePayment;

/// A client with its mandate and its latest verification, from which the public status of the mandate follows.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientMandate {
    pub client_found: bool,
    pub debtor: Option<Debtor>,
    pub verification: Option<OnlinePayment>,
}

impl ClientMandate {
    pub(crate) fn status(&self) -> MandateStatus {
        rules::status(self.debtor.as_ref(), self.verification.as_ref().map(|payment| payment.status))
    }

    /// The mandate as a message.
    pub(crate) fn message(&self, provider: &str, activation: ActivationStatus) -> Mandate {
        let status = self.status();
        let authorized = rules::is_authorized(status);
        let debtor = self.debtor.as_ref();
        let text = |of: fn(&Debtor) -> &String| debtor.map(of).cloned().unwrap_or_default();
        let mandate_id = text(|debtor| &debtor.mandate_id);
        let verification = self.verification.as_ref();
        Mandate {
            client_found: self.client_found,
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
                verification_status: verification.map(|payment| payment.status.name().to_owned()),
                verified_at: debtor.and_then(|debtor| debtor.verified_at).map(timestamp),
                authorized_at: debtor.and_then(|debtor| debtor.authorized_at).map(timestamp),
                activated_at: debtor.and_then(|debtor| debtor.activated_at).map(timestamp),
            }),
        }
    }
}

/// The mandate as the log stores it.
impl From<&Debtor> for Mandate {
    fn from(debtor: &Debtor) -> Self {
        let client = ClientMandate { client_found: true, debtor: Some(debtor.clone()), verification: None };
        client.message(&debtor.provider, ActivationStatus::Unspecified)
    }
}
