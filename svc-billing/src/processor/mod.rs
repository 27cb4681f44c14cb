//! The processing of online payments: everything that calls a payment provider, and everything that follows from its
//! answers. The stored records are in [`crate::online_payment`].
//!
//! # The life of an online payment
//!
//! 1. **Request.** One transaction stores the payment with the status `Requested`, shows it on its invoice, and
//!    queues the command `CreatePayment` ([`operations::request_payment`]). A payer who presses the button on the
//!    page of an invoice requests a checkout ([`PaymentProcessor::checkout`]), a client who is asked for a mandate a
//!    verification, and an invoice whose client has a mandate a collection ([`operations::collect`]).
//! 2. **Create at the provider.** After the commit, with no transaction open, the provider is called
//!    ([`PaymentProcessor::execute`]). The id of the command is the idempotency key of the call.
//! 3. **Record.** A second transaction stores the answer and removes the command ([`operations::record`]). The
//!    payment is now `Open`, or `Failed` if the provider refused.
//! 4. **Redirect.** The payer is sent to the checkout URL of the provider, and comes back to the page of the invoice.
//!    A collection has no payer: it is `Pending` until the bank answers.
//! 5. **Webhook.** The provider calls the webhook URL when the payment changes ([`rpc`]). Nothing in a webhook is
//!    trusted; it only causes a refresh: the payment is fetched from the provider and the answer is recorded as in
//!    step 3.
//! 6. **Poll.** Webhooks can be lost. Each recorded answer schedules the next refresh for as long as the payment can
//!    change ([`rules::next_poll`](crate::online_payment::rules::next_poll)), and the page of an open payment
//!    refreshes it.
//! 7. **Settle.** A payment that became `Paid` changes the amounts and the status of its invoice in the transaction
//!    that records it. If the invoice was paid by other means meanwhile, the whole payment is refunded. When the open
//!    amount of an invoice changes, an open payment for the old amount is canceled.
//! 8. **Refund and chargeback.** The status stays `Paid`; what was returned to the payer is stored as `refunded` or
//!    `charged_back`, and the invoice is open again for it. Polling goes on for 90 days, because banks charge back
//!    late.
//!
//! # Lost answers and crashes
//!
//! A command is stored before the call and removed with its outcome, so a process can be killed at any point:
//!
//! - *Before the commit of step 1*: nothing happened.
//! - *Between steps 1 and 2*: the command is in the queue. The worker executes it [`TAKEOVER_DELAY`] later, or the
//!   payer presses the button again.
//! - *Between steps 2 and 3, or when the answer is lost*: the command is executed again. A repeated creation first
//!   searches for the payment by our reference, a repeated refund first compares the refunded amount, and both are
//!   sent with the same idempotency key. No payment is created twice.
//! - *The provider cannot be reached*: the command is postponed with a growing delay. A creation is given up after
//!   [`rules::creation_timeout`](crate::online_payment::rules::creation_timeout), because no payer waits any more.
//!
//! Answers can arrive late and in any order; `online_payment::rules::apply` decides which of them counts.
//!
//! Transactions lock the invoice first, then the debtor, then the online payment.
//!
//! [`TAKEOVER_DELAY`]: crate::online_payment::TAKEOVER_DELAY

mod checkout;
mod execute;
mod no_provider;
pub(crate) mod operations;
mod origin;
mod page;
mod refresh;
pub(crate) mod rpc;
mod worker;

use std::sync::Arc;

use chassis_base::AccountId;
use chassis_data::Db;
use provider::Provider;

pub(crate) use checkout::Checkout;
pub(crate) use no_provider::{NO_PROVIDER, NoProvider};
pub(crate) use origin::Origin;
pub(crate) use rpc::webhook_received;
pub(crate) use worker::worker;

use crate::clients::Clients;
use crate::document::Links;
use crate::error::Error;
use crate::settings;

/// Calls the payment provider and records its answers.
pub(crate) struct PaymentProcessor {
    pub db: Db,
    pub provider: Arc<dyn Provider>,
    pub access: ProviderAccess,
    pub clients: Clients,
    /// The public URL of the gateway, without a slash at the end.
    pub base: Arc<str>,
}

/// Which accounts use the configured provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProviderAccess {
    EveryAccount,
    /// Only accounts whose settings allow sandbox payments; `default` applies to accounts without that setting.
    /// Anyone can claim to have paid in the sandbox, so an account must not get there by accident.
    OptIn {
        default: bool,
    },
}

impl PaymentProcessor {
    /// The links of the invoices that payments change.
    pub(crate) fn links(&self) -> Links {
        Links::new(&self.base)
    }

    /// The name of the account's provider; [`NO_PROVIDER`] if it has none.
    pub(crate) async fn provider_for(&self, account: AccountId) -> Result<&'static str, Error> {
        let name = self.provider.name();
        let ProviderAccess::OptIn { default } = self.access else { return Ok(name) };
        let allowed = self
            .db
            .read(async |connection| settings::store::find_sandbox_payments(connection, account).await)
            .await?;
        Ok(if allowed.unwrap_or(default) { name } else { NO_PROVIDER })
    }

    /// The name of the provider for a new payment of an account; an error if the account has none.
    pub(crate) async fn require_provider(&self, account: AccountId) -> Result<&'static str, Error> {
        let name = self.provider_for(account).await?;
        if name == NO_PROVIDER { Err(Error::NoProvider) } else { Ok(name) }
    }

    /// The path of a URL of this installation; any other URL is returned unchanged. A payer may reach the gateway
    /// under another host name than the configured one.
    pub(crate) fn local_path(&self, url: &str) -> String {
        let path = url.strip_prefix(&*self.base).filter(|path| path.starts_with('/'));
        path.unwrap_or(url).to_owned()
    }
}
