//! Verifications and mandates as the contract shows them.

use chassis_base::time::timestamp;
use proto::billing::{
    ActivationStatus, Mandate, MandateMeta, MandateStatus, SubscriptionActivation, Verification,
    VerificationMeta, VerificationStatus,
};
use uuid::Uuid;

use super::{Debtor, rules};
use crate::online::OnlinePayment;

pub fn verification(payment: &OnlinePayment, client: Uuid, canceled_previous: bool) -> Verification {
    Verification {
        status: VerificationStatus::Created.into(),
        payment_url: payment.checkout_url.clone(),
        external_id: payment.external_id.clone(),
        amount: payment.amount.to_string(),
        provider: payment.provider.clone(),
        canceled_previous,
        meta: Some(VerificationMeta {
            id: payment.id.to_string(),
            client_id: client.to_string(),
            currency: payment.currency.clone(),
            created_at: Some(timestamp(payment.created_at)),
        }),
    }
}

/// What is known of a client and its mandate.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub client_found: bool,
    pub debtor: Option<Debtor>,
    pub verification: Option<OnlinePayment>,
}

impl Known {
    pub fn status(&self) -> MandateStatus {
        rules::status(self.debtor.as_ref(), self.verification.as_ref().map(|payment| payment.status))
    }
}

/// A mandate as the audit log keeps it.
pub fn of_debtor(debtor: &Debtor) -> Mandate {
    let known = Known { client_found: true, debtor: Some(debtor.clone()), verification: None };
    mandate(&known, &debtor.provider, ActivationStatus::Unspecified)
}

pub fn mandate(known: &Known, provider: &str, activation: ActivationStatus) -> Mandate {
    let status = known.status();
    let authorized = rules::is_authorized(status);
    let debtor = known.debtor.as_ref();
    let text = |of: fn(&Debtor) -> &String| debtor.map(of).cloned().unwrap_or_default();
    let mandate_id = text(|debtor| &debtor.mandate_id);
    Mandate {
        client_found: known.client_found,
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
            verification_status: known.verification.as_ref().map(|payment| payment.status.name().to_owned()),
            verified_at: debtor.and_then(|debtor| debtor.verified_at).map(timestamp),
            authorized_at: debtor.and_then(|debtor| debtor.authorized_at).map(timestamp),
            activated_at: debtor.and_then(|debtor| debtor.activated_at).map(timestamp),
        }),
    }
}
