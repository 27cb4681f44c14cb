//! The checkout of an invoice, from the button on its page to the URL of the provider. A file of its own, because it
//! alternates between transactions and calls to the provider.

use chassis_rpc::{Call, Context};
use proto::Faults;
use proto::billing::PayOnPageRequest;
use tonic::Status as Refusal;

use super::PaymentProcessor;
use super::operations::{StartCheckout, start_checkout};
use crate::document::Record;
use crate::online_payment::{CommandKind, Status, provider_unavailable, store};

/// How often a checkout for another amount is canceled before the payer is sent back to the page.
const MAX_CANCELLATIONS: usize = 3;

/// The invoice to be paid.
pub(crate) struct Checkout<'a> {
    pub invoice: &'a Record,
    /// The URL of its page, which the payer returns to.
    pub page: String,
}

impl PaymentProcessor {
    /// Starts or continues the payment of an invoice, and returns where the payer is sent; `None` is back to the page.
    pub(crate) async fn checkout(
        &self,
        context: &Context,
        input: &PayOnPageRequest,
        checkout: Checkout<'_>,
    ) -> Result<Option<String>, Refusal> {
        let provider = self.require_provider(context.account_id()).await?;
        let invoice = checkout.invoice.id.to_string();
        let start = StartCheckout { invoice, provider, page: checkout.page.into(), links: self.links() };
        for _ in 0..MAX_CANCELLATIONS {
            let call = Call { context: context.clone(), input: input.clone(), faults: Faults::default() };
            let step = self.db.write_with(call, start.clone(), start_checkout).await?.into_inner();
            if let Some(id) = chassis_base::id::parse(&step.cancel) {
                self.execute_now(context, CommandKind::CancelPayment, id).await?;
                continue;
            }
            let Some(id) = chassis_base::id::parse(&step.payment) else { return Ok(None) };
            self.execute_now(context, CommandKind::CreatePayment, id).await?;
            if step.again {
                // It may have been paid while the webhook was lost. If the provider does not answer now, its checkout
                // page shows that nothing is left to pay.
                self.refresh_best_effort(context, id).await;
            }
            let payment = self
                .db
                .read(async |connection| store::find(connection, context.account_id(), id).await)
                .await?;
            return match payment {
                Some(payment) if payment.status == Status::Requested => Err(provider_unavailable().into()),
                Some(payment) if !payment.checkout_url.is_empty() => {
                    Ok(Some(self.local_path(&payment.checkout_url)))
                }
                _ => Ok(None),
            };
        }
        Ok(None)
    }
}
