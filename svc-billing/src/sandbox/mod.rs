//! The embedded payment provider: everything that a real one does, without money. Its customers, mandates and payments
//! are kept beside billing's own rows, but billing knows them only through the interface of providers, and hears of
//! changes as it does of a real provider's: of payments, and not of mandates.
//!
//! A payment that somebody has to make is made, refused or left to expire on its page. A collection is paid by itself
//! at once, unless the page of its mandate was told to have the next one refused. On the page of a payment that was made
//! it can be charged back or refunded.

mod operations;
mod page;
pub mod rpc;
mod rules;
mod settings;
mod store;
mod worker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis_base::{Account, AccountId};
use chassis_data::{Db, Tx};
use chassis_rpc::token::Tokens;
use chassis_rpc::{Call, Context, Link};
use chrono::{DateTime, Utc};
use prost::Message;
use proto::Faults;
use provider::{Fault, Key, Mandate, NewCustomer, NewPayment, Payment, Provider, Refund, Webhook};
use rust_decimal::Decimal;
use uuid::Uuid;

pub use settings::Settings;
pub use worker::worker;

use crate::{Error, online};
use operations::{Made, Name};

pub const NAME: &str = "sandbox";
const LONGEST: Duration = Duration::from_secs(10);

/// What the sandbox is to billing.
pub struct Sandbox {
    pub db: Db,
    pub tokens: Tokens,
    /// Where the gateway is reached from outside, without a slash at the end.
    pub base: Arc<str>,
}

/// Ids carry their account: a provider's ids are looked up without one.
fn external(account: AccountId, id: Uuid) -> String {
    Link { account, secret: *id.as_bytes() }.encode()
}

/// The opposite of [`external`].
fn internal(text: &str) -> Option<(AccountId, Uuid)> {
    Link::parse(text).map(|link| (link.account, Uuid::from_bytes(link.secret)))
}

/// The account in one of our references.
fn account_of(reference: &str) -> Option<AccountId> {
    online::referred(reference).map(|(account, _)| account)
}

impl Sandbox {
    async fn account(&self, id: Option<AccountId>) -> Result<Account, Fault> {
        let found = match id {
            Some(id) => self.db.account(id).await.map_err(|error| unclear(&error))?,
            None => None,
        };
        found.ok_or_else(|| refused("It names no account."))
    }

    /// A write like any other: the key makes sure that it is done once, and a repeat gets the first answer.
    async fn write<R, F>(
        &self,
        account: Account,
        rpc: &'static str,
        key: &Key,
        input: R,
        operation: F,
    ) -> Result<String, Fault>
    where
        R: Message,
        F: AsyncFn(&mut Tx<'_>, &R) -> Result<Made, Error>,
    {
        let clock = self.db.clock().clone();
        let now = clock.now();
        let token = self.tokens.to_self().mint_mesh(&account, NAME, now);
        let identity = self.tokens.verify(&token, now).ok_or_else(|| refused("It is not trusted."))?;
        let context = Context {
            identity,
            request_id: key.0.as_str().into(),
            rpc,
            idempotency_key: Some(key.0.as_str().into()),
            carried: Arc::default(),
            deadline: Instant::now() + LONGEST,
            clock,
        };
        let call = Call { context, input, faults: Faults::default() };
        let made = self.db.write(call, operation).await;
        let made =
            made.map_err(|status| Fault::Unknown { detail: status.message().to_owned() })?.into_inner();
        match made.refusal {
            refusal if refusal.is_empty() => Ok(made.id),
            detail if made.is_mandate => Err(Fault::MandateInvalid { detail }),
            detail => Err(refused(&detail)),
        }
    }

    async fn get(&self, id: &str) -> Result<Payment, Fault> {
        let found = self.payment(id).await?;
        found.ok_or_else(|| Fault::Unknown { detail: "a payment that was made is not there".to_owned() })
    }
}

#[tonic::async_trait]
impl Provider for Sandbox {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn create_customer(&self, key: &Key, customer: &NewCustomer) -> Result<String, Fault> {
        let account = self.account(account_of(&customer.reference)).await?;
        let new = Name { reference: customer.reference.clone(), name: customer.name.clone() };
        self.write(account, "sandbox/create_customer", key, new, operations::create_customer).await
    }

    async fn create_payment(&self, key: &Key, payment: &NewPayment) -> Result<Payment, Fault> {
        let account = self.account(account_of(&payment.reference)).await?;
        let new = operations::Wanted::from(payment);
        let id = self.write(account, "sandbox/create_payment", key, new, operations::create_payment).await?;
        self.get(&id).await
    }

    async fn payment(&self, id: &str) -> Result<Option<Payment>, Fault> {
        let Some((account, id)) = internal(id) else { return Ok(None) };
        let found =
            async { self.db.read(async |connection| store::find(connection, account, id).await).await };
        let found = found.await.map_err(|error| unclear(&error.into()))?;
        Ok(found.map(|payment| payment.told(account, &self.base)))
    }

    async fn find_payment(&self, reference: &str, _since: DateTime<Utc>) -> Result<Option<Payment>, Fault> {
        let Some(account) = account_of(reference) else { return Ok(None) };
        let found = async {
            self.db
                .read(async |connection| store::find_by_reference(connection, account, reference).await)
                .await
        };
        let found = found.await.map_err(|error| unclear(&error.into()))?;
        Ok(found.map(|payment| payment.told(account, &self.base)))
    }

    async fn cancel_payment(&self, key: &Key, id: &str) -> Result<Option<Payment>, Fault> {
        let Some((account, _)) = internal(id) else { return Ok(None) };
        let account = self.account(Some(account)).await?;
        let named = operations::Named { id: id.to_owned(), amount: String::new() };
        self.write(account, "sandbox/cancel_payment", key, named, operations::cancel).await?;
        self.payment(id).await
    }

    async fn mandates(&self, customer: &str) -> Result<Vec<Mandate>, Fault> {
        let Some((account, id)) = internal(customer) else { return Ok(Vec::new()) };
        let found = async {
            self.db.read(async |connection| store::list_mandates(connection, account, id).await).await
        };
        let found = found.await.map_err(|error| unclear(&error.into()))?;
        Ok(found.into_iter().map(|mandate| mandate.told(account)).collect())
    }

    async fn refund(&self, key: &Key, payment: &str, amount: Decimal) -> Result<Refund, Fault> {
        let Some((account, _)) = internal(payment) else { return Err(refused("There is no such payment.")) };
        let account = self.account(Some(account)).await?;
        let named = operations::Named { id: payment.to_owned(), amount: amount.to_string() };
        let id = self.write(account, "sandbox/refund", key, named, operations::refund).await?;
        Ok(Refund { id, amount })
    }

    fn heard(&self, _: &Webhook<'_>) -> Result<Option<String>, Fault> {
        Err(refused("the sandbox signs no messages"))
    }
}

fn refused(detail: &str) -> Fault {
    Fault::Refused { detail: detail.to_owned(), field: None }
}

fn unclear(error: &chassis_base::Error) -> Fault {
    Fault::Unknown { detail: error.to_string() }
}
