//! Direct debit: asking a client for a mandate, reporting the mandate, activating a subscription with it, and
//! collecting an invoice on request. The mandates themselves are in `mandate`; payments are created and recorded by
//! `processor`.

mod operations;
mod provider_calls;
pub(crate) mod rpc;

use chassis_base::time::timestamp;
use proto::billing::{Verification, VerificationMeta, VerificationStatus};
use uuid::Uuid;

use crate::online_payment::OnlinePayment;

/// A verification that was requested.
struct StartedVerification {
    client: Uuid,
    payment: OnlinePayment,
    /// Whether an open verification of the client is canceled for it.
    canceled_previous: bool,
}

impl From<StartedVerification> for Verification {
    fn from(started: StartedVerification) -> Self {
        let payment = started.payment;
        Self {
            status: VerificationStatus::Created.into(),
            payment_url: payment.checkout_url,
            external_id: payment.external_id,
            amount: payment.amount.to_string(),
            provider: payment.provider,
            canceled_previous: started.canceled_previous,
            meta: Some(VerificationMeta {
                id: payment.id.to_string(),
                client_id: started.client.to_string(),
                currency: payment.currency,
                created_at: Some(timestamp(payment.created_at)),
            }),
        }
    }
}
