//! The sandbox's webhook. A file of its own, because both the pages and the worker send it.

use chassis_rpc::Link;

use super::Payment;
use crate::processor::{Origin, PaymentProcessor, webhook_received};

/// Reports a change of a payment to billing, as the webhook of a provider does: by the token in the webhook URL. If
/// that fails, billing polls the payment later.
pub(crate) async fn notify(processor: &PaymentProcessor, origin: &Origin<'_>, payment: &Payment) {
    let Some(link) = payment.webhook_url.rsplit('/').next().and_then(Link::parse) else { return };
    if let Err(error) = webhook_received(processor, origin, link.secret).await {
        let error = chassis_base::Error::from(error);
        tracing::warn!(%error, "webhook of the sandbox failed");
    }
}
