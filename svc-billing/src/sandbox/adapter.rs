//! The sandbox behind the interface of providers. A file of its own, because it implements that interface.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis_base::{Account, AccountId};
use chassis_data::{Db, Tx};
use chassis_rpc::{Call, Context};
use chrono::{DateTime, Utc};
use prost::Message;
use proto::Faults;
use provider::{Fault, IdempotencyKey, Mandate, NewCustomer, NewPayment, Payment, Provider, Refund, Webhook};
use rust_decimal::Decimal;

use super::operations::{self, CreateCustomer, CreatePayment, PaymentAmount, WriteResult};
use super::{NAME, parse_external_id, store};
use crate::error::Error;
use crate::online_payment;

/// The time for one write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The embedded provider.
pub(crate) struct Sandbox {
    pub db: Db,
    /// The public URL of the gateway, without a slash at the end.
    pub base: Arc<str>,
}

/// The account in a reference of billing.
fn account_of(reference: &str) -> Option<AccountId> {
    online_payment::parse_reference(reference).map(|(account, _)| account)
}

impl Sandbox {
    async fn account(&self, id: Option<AccountId>) -> Result<Account, Fault> {
        let found = match id {
            Some(id) => self.db.account(id).await.map_err(|error| unknown_outcome(&error))?,
            None => None,
        };
        found.ok_or_else(|| refused("The reference names no account."))
    }

    /// A write like that of an rpc: the idempotency key ensures that it is done once, and a repeat gets the first
    /// answer.
    async fn write<R, F>(
        &self,
        account: Account,
        rpc: &'static str,
        key: &IdempotencyKey,
        input: R,
        operation: F,
    ) -> Result<String, Fault>
    where
        R: Message,
        F: AsyncFn(&mut Tx<'_>, &R) -> Result<WriteResult, Error>,
    {
        let context = Context {
            request_id: key.0.as_str().into(),
            idempotency_key: Some(key.0.as_str().into()),
            deadline: Instant::now() + WRITE_TIMEOUT,
            ..Context::internal(&account, NAME, rpc, self.db.clock())
        };
        let call = Call { context, input, faults: Faults::default() };
        let written = self.db.write(call, operation).await;
        let result = written
            .map_err(|status| Fault::OutcomeUnknown { detail: status.message().to_owned() })?
            .into_inner();
        match result.refusal {
            refusal if refusal.is_empty() => Ok(result.id),
            detail if result.is_mandate => Err(Fault::MandateInvalid { detail }),
            detail => Err(refused(&detail)),
        }
    }

    async fn get_payment(&self, id: &str) -> Result<Payment, Fault> {
        let found = self.find_payment(id).await?;
        let missing = || Fault::OutcomeUnknown { detail: "a created payment is missing".to_owned() };
        found.ok_or_else(missing)
    }
}

#[tonic::async_trait]
impl Provider for Sandbox {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn create_customer(&self, key: &IdempotencyKey, customer: &NewCustomer) -> Result<String, Fault> {
        let account = self.account(account_of(&customer.reference)).await?;
        let new = CreateCustomer { reference: customer.reference.clone(), name: customer.name.clone() };
        self.write(account, "sandbox/create_customer", key, new, operations::create_customer).await
    }

    async fn create_payment(&self, key: &IdempotencyKey, payment: &NewPayment) -> Result<Payment, Fault> {
        let account = self.account(account_of(&payment.reference)).await?;
        let new = CreatePayment::from(payment);
        let id = self.write(account, "sandbox/create_payment", key, new, operations::create_payment).await?;
        self.get_payment(&id).await
    }

    async fn find_payment(&self, id: &str) -> Result<Option<Payment>, Fault> {
        let Some((account, id)) = parse_external_id(id) else { return Ok(None) };
        let found =
            async { self.db.read(async |connection| store::find(connection, account, id).await).await };
        let found = found.await.map_err(|error| unknown_outcome(&error.into()))?;
        Ok(found.map(|payment| payment.into_answer(account, &self.base)))
    }

    async fn find_payment_by_reference(
        &self,
        reference: &str,
        _since: DateTime<Utc>,
    ) -> Result<Option<Payment>, Fault> {
        let Some(account) = account_of(reference) else { return Ok(None) };
        let found = async {
            self.db
                .read(async |connection| store::find_by_reference(connection, account, reference).await)
                .await
        };
        let found = found.await.map_err(|error| unknown_outcome(&error.into()))?;
        Ok(found.map(|payment| payment.into_answer(account, &self.base)))
    }

    async fn cancel_payment(&self, key: &IdempotencyKey, id: &str) -> Result<Option<Payment>, Fault> {
        let Some((account, _)) = parse_external_id(id) else { return Ok(None) };
        let account = self.account(Some(account)).await?;
        let input = PaymentAmount { id: id.to_owned(), amount: String::new() };
        self.write(account, "sandbox/cancel_payment", key, input, operations::cancel).await?;
        self.find_payment(id).await
    }

    async fn list_mandates(&self, customer: &str) -> Result<Vec<Mandate>, Fault> {
        let Some((account, id)) = parse_external_id(customer) else { return Ok(Vec::new()) };
        let found = async {
            self.db.read(async |connection| store::list_mandates(connection, account, id).await).await
        };
        let found = found.await.map_err(|error| unknown_outcome(&error.into()))?;
        Ok(found.into_iter().map(|mandate| mandate.into_answer(account)).collect())
    }

    async fn create_refund(
        &self,
        key: &IdempotencyKey,
        payment: &str,
        amount: Decimal,
    ) -> Result<Refund, Fault> {
        let Some((account, _)) = parse_external_id(payment) else {
            return Err(refused("There is no such payment."));
        };
        let account = self.account(Some(account)).await?;
        let input = PaymentAmount { id: payment.to_owned(), amount: amount.to_string() };
        let id = self.write(account, "sandbox/refund", key, input, operations::refund).await?;
        Ok(Refund { id, amount })
    }

    fn verify_webhook(&self, _: &Webhook<'_>) -> Result<Option<String>, Fault> {
        Err(refused("the sandbox signs no messages"))
    }
}

fn refused(detail: &str) -> Fault {
    Fault::Refused { detail: detail.to_owned(), field: None }
}

fn unknown_outcome(error: &chassis_base::Error) -> Fault {
    Fault::OutcomeUnknown { detail: error.to_string() }
}
