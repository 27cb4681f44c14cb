//! Executing commands: the calls to the provider, with no transaction open, so that a slow provider holds no lock and
//! no database connection. A file of its own, because `operations` only writes.

use std::time::{Duration, Instant};

use chassis_base::Account;
use chrono::{DateTime, TimeDelta, Utc};
use provider::{Fault, NewCustomer, NewPayment, Sequence};
use sqlx::PgConnection;

use super::operations::{CommandOutcome, Outcome};
use super::{Origin, PaymentProcessor};
use crate::error::Error;
use crate::online_payment::rules::{self, Observed};
use crate::online_payment::store::{self, commands};
use crate::online_payment::{CommandKind, OnlinePayment, ProviderCommand, Purpose, Status, reference};
use crate::{clients, mandate};

/// The time for looking up a client.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// A payment that the provider does not list after this time does not exist there.
const NOT_FOUND_AFTER: TimeDelta = TimeDelta::days(1);
/// How often a refused refund is attempted.
const MAX_REFUND_ATTEMPTS: i32 = 8;
/// How much earlier than our record a payment may have been created by the provider's clock.
const MAX_CLOCK_SKEW: TimeDelta = TimeDelta::minutes(10);

impl PaymentProcessor {
    /// Executes a command, after the command that it depends on, and records what came of each.
    pub(crate) async fn execute(&self, origin: &Origin<'_>, command: &ProviderCommand) -> Result<(), Error> {
        if let Some(first) = self.prerequisite(origin, command).await? {
            let outcome = self.call_provider(origin, &first).await?;
            origin.record(&self.db, &CommandOutcome { command: first, outcome, links: self.links() }).await?;
        }
        let outcome = self.call_provider(origin, command).await?;
        // A process that is killed here leaves the command in the queue, although the provider has done the work. The
        // next attempt finds that out, see `create_payment` and `refund`.
        let done = CommandOutcome { command: command.clone(), outcome, links: self.links() };
        origin.record(&self.db, &done).await
    }

    /// The queued command that has to be executed first: a verification needs its customer, and every other command
    /// the creation of its payment.
    async fn prerequisite(
        &self,
        origin: &Origin<'_>,
        command: &ProviderCommand,
    ) -> Result<Option<ProviderCommand>, Error> {
        let account = origin.account().id;
        if command.kind == CommandKind::CreateCustomer {
            return Ok(None);
        }
        let read = async |connection: &mut PgConnection| {
            let payment = store::find(connection, account, command.subject).await?;
            let Some(payment) = payment.filter(|payment| payment.status == Status::Requested) else {
                return Ok(None);
            };
            match (command.kind, payment.client_id) {
                (CommandKind::CreatePayment, Some(client)) if payment.purpose == Purpose::Verification => {
                    commands::find(connection, account, CommandKind::CreateCustomer, client).await
                }
                (CommandKind::CreatePayment, _) => Ok(None),
                _ => commands::find(connection, account, CommandKind::CreatePayment, payment.id).await,
            }
        };
        self.db.read(read).await
    }

    async fn call_provider(&self, origin: &Origin<'_>, command: &ProviderCommand) -> Result<Outcome, Error> {
        if command.kind == CommandKind::CreateCustomer {
            return self.create_customer(origin.account(), command).await;
        }
        let payment = match self.load_payment(origin.account(), command).await? {
            Some(payment) if payment.provider == self.provider.name() => payment,
            Some(_) => return Ok(Outcome::OtherProvider),
            None => return Ok(Outcome::Superseded),
        };
        let now = origin.now();
        let answer = match command.kind {
            CommandKind::CreatePayment => self.create_payment(origin.account(), command, &payment, now).await,
            _ if payment.external_id.is_empty() => return Ok(Outcome::Superseded),
            CommandKind::CancelPayment if !payment.status.is_open() => return Ok(Outcome::Superseded),
            CommandKind::CancelPayment => {
                self.provider.cancel_payment(&command.idempotency_key(), &payment.external_id).await
            }
            CommandKind::RefundPayment => self.refund(command, &payment).await,
            CommandKind::RefreshPayment | CommandKind::CreateCustomer => {
                self.provider.find_payment(&payment.external_id).await
            }
        };
        Ok(match answer {
            Ok(Some(answer)) => self.observe(command, &payment, answer, now).await,
            Ok(None) if command.kind == CommandKind::CreatePayment => Outcome::Superseded,
            // A provider may list a new payment late.
            Ok(None) if now - payment.created_at > NOT_FOUND_AFTER => Outcome::NotFound,
            Ok(None) => Outcome::Retry { error: "the provider does not know it".to_owned(), after: None },
            Err(Fault::MandateInvalid { detail }) => {
                let mandates = self.mandates_after_refusal(&payment).await;
                Outcome::MandateInvalid { detail, mandates, at: now }
            }
            Err(Fault::Refused { detail, .. }) if survives_refusal(command) => {
                Outcome::Retry { error: detail, after: None }
            }
            Err(fault) => fault.into(),
        })
    }

    /// The payment of a command, with the provider's id of its client.
    async fn load_payment(
        &self,
        account: &Account,
        command: &ProviderCommand,
    ) -> Result<Option<OnlinePayment>, Error> {
        let read = async |connection: &mut PgConnection| {
            let found = store::find(connection, account.id, command.subject).await?;
            let Some(mut payment) = found else { return Ok(None) };
            if let Some(client) = payment.client_id.filter(|_| payment.customer_id.is_empty()) {
                let provider = self.provider.name();
                let debtor = mandate::store::find(connection, account.id, client, provider).await?;
                payment.customer_id = debtor.map(|debtor| debtor.customer_id).unwrap_or_default();
            }
            Ok(Some(payment))
        };
        self.db.read(read).await
    }

    async fn observe(
        &self,
        command: &ProviderCommand,
        payment: &OnlinePayment,
        answer: provider::Payment,
        at: DateTime<Utc>,
    ) -> Outcome {
        let mandates = self.mandates_after_end(payment, &answer).await;
        let created = command.kind == CommandKind::CreatePayment;
        Outcome::Observed(Box::new(Observed { payment: answer, mandates, at, created }))
    }

    async fn create_customer(&self, account: &Account, command: &ProviderCommand) -> Result<Outcome, Error> {
        let deadline = Instant::now() + CLIENT_TIMEOUT;
        let Some(client) = self.clients.get(account, command.subject, deadline).await? else {
            return Ok(Outcome::Refused("The client is no longer there.".to_owned()));
        };
        let customer = NewCustomer {
            reference: reference(account.id, command.subject),
            name: clients::buyer(&client).name,
            email: Some(client.email).filter(|email| !email.is_empty()),
        };
        Ok(match self.provider.create_customer(&command.idempotency_key(), &customer).await {
            Ok(customer) => Outcome::CustomerCreated { provider: self.provider.name(), customer },
            Err(fault) => fault.into(),
        })
    }

    /// Creates a payment at the provider, or finds the one that an earlier attempt created without its answer
    /// reaching us.
    async fn create_payment(
        &self,
        account: &Account,
        command: &ProviderCommand,
        payment: &OnlinePayment,
        now: DateTime<Utc>,
    ) -> Result<Option<provider::Payment>, Fault> {
        if payment.status != Status::Requested {
            return Ok(None);
        }
        if payment.purpose == Purpose::Verification && payment.customer_id.is_empty() {
            return Err(self.missing_customer(account, payment).await);
        }
        // The idempotency key alone is not enough: a provider forgets it after a while.
        if command.attempts > 1 {
            let since = payment.created_at - MAX_CLOCK_SKEW;
            let ours = reference(account.id, payment.id);
            if let Some(created) = self.provider.find_payment_by_reference(&ours, since).await? {
                return Ok(Some(created));
            }
            if now - command.created_at > rules::creation_timeout(payment.purpose) {
                let detail = "The provider could not be reached in time.".to_owned();
                return Err(Fault::Refused { detail, field: None });
            }
        }
        let new = self.new_payment(account, payment);
        self.provider.create_payment(&command.idempotency_key(), &new).await.map(Some)
    }

    fn new_payment(&self, account: &Account, payment: &OnlinePayment) -> NewPayment {
        let customer = payment.customer_id.clone();
        let token = chassis_rpc::Link { account: account.id, secret: payment.token }.encode();
        NewPayment {
            reference: reference(account.id, payment.id),
            sequence: match payment.purpose {
                Purpose::Checkout => Sequence::OneOff,
                Purpose::Verification => Sequence::First { customer },
                Purpose::Collection => Sequence::Recurring { customer, mandate: payment.mandate_id.clone() },
            },
            amount: payment.amount,
            currency: payment.currency.clone(),
            description: payment.description.clone(),
            return_url: Some(payment.return_url.clone()).filter(|url| !url.is_empty()),
            webhook_url: format!("{}/payments/webhooks/{token}", self.base),
        }
    }

    /// The fault of a verification whose customer does not exist at the provider. `CreateCustomer` is executed first;
    /// if it is no longer queued, the provider refused the client.
    async fn missing_customer(&self, account: &Account, payment: &OnlinePayment) -> Fault {
        let client = payment.client_id.unwrap_or_default();
        let queued = async {
            self.db
                .read(async |connection| {
                    commands::find(connection, account.id, CommandKind::CreateCustomer, client).await
                })
                .await
        };
        if let Ok(None) = queued.await {
            let detail = "The provider does not take this client.".to_owned();
            return Fault::Refused { detail, field: None };
        }
        let detail = "the provider does not know the client yet".to_owned();
        Fault::Unavailable { detail, retry_after: None }
    }

    /// Refunds a payment once: a repeated attempt first looks whether an earlier one succeeded without its answer
    /// reaching us.
    async fn refund(
        &self,
        command: &ProviderCommand,
        payment: &OnlinePayment,
    ) -> Result<Option<provider::Payment>, Fault> {
        let id = &payment.external_id;
        if command.attempts > 1 {
            let found = self.provider.find_payment(id).await?;
            let expected = payment.refunded + command.amount;
            if found.as_ref().is_some_and(|found| found.refunded >= expected) {
                return Ok(found);
            }
        }
        self.provider.create_refund(&command.idempotency_key(), id, command.amount).await?;
        self.provider.find_payment(id).await
    }

    /// The mandates of a client after the provider refused the one of this collection. If they cannot be fetched, the
    /// refused one alone is reported as invalid.
    async fn mandates_after_refusal(&self, payment: &OnlinePayment) -> Vec<provider::Mandate> {
        let refused = &payment.mandate_id;
        match self.provider.list_mandates(&payment.customer_id).await {
            Ok(mandates) => mandate::rules::invalidate(mandates, refused),
            Err(fault) => {
                tracing::warn!(%fault, payment = %payment.id, "mandates could not be fetched");
                vec![provider::Mandate { id: refused.clone(), status: provider::MandateStatus::Invalid }]
            }
        }
    }

    /// The mandates of a client after a payment ended, which may have granted or revoked one. If they cannot be
    /// fetched, the payment is recorded without them, and they follow with the next refresh.
    async fn mandates_after_end(
        &self,
        payment: &OnlinePayment,
        answer: &provider::Payment,
    ) -> Option<Vec<provider::Mandate>> {
        if payment.purpose == Purpose::Checkout || Status::from(answer.status).is_open() {
            return None;
        }
        match self.provider.list_mandates(&payment.customer_id).await {
            Ok(mandates) => Some(mandates),
            Err(fault) => {
                tracing::warn!(%fault, payment = %payment.id, "mandates could not be fetched");
                None
            }
        }
    }
}

/// Whether a command is repeated after a refusal. The refusal may be due to an API key that was wrong for a while: a
/// refresh is never given up, and a refund only after some attempts.
fn survives_refusal(command: &ProviderCommand) -> bool {
    match command.kind {
        CommandKind::RefreshPayment => true,
        CommandKind::RefundPayment => command.attempts < MAX_REFUND_ATTEMPTS,
        _ => false,
    }
}
