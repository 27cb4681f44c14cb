//! No provider at all: in use where none is set up and the sandbox may not be, by the operator or by the account. Nothing
//! is begun with it, see [`Till::begins_with`]; what was begun with another waits for that one to come back.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use provider::{Fault, Key, Mandate, NewCustomer, NewPayment, Payment, Provider, Refund, Webhook};
use rust_decimal::Decimal;

use super::Till;
use crate::{Error, sandbox, settings};

/// The name of the provider of accounts that have none.
pub const NONE: &str = "none";

pub struct Closed;

impl Till {
    /// The name of the account's provider. The sandbox is one only for accounts that may use it: anyone can say there
    /// that they paid.
    pub async fn provider_of(&self, account: AccountId) -> Result<&'static str, Error> {
        let name = self.provider.name();
        if name != sandbox::NAME {
            return Ok(name);
        }
        let said = self
            .db
            .read(async |connection| settings::store::find_sandbox_payments(connection, account).await)
            .await?;
        Ok(if said.unwrap_or(self.sandbox_by_default) { name } else { NONE })
    }

    /// The name of the provider that something new of an account is begun with, if there is one.
    pub async fn begins_with(&self, account: AccountId) -> Result<&'static str, Error> {
        let name = self.provider_of(account).await?;
        if name == NONE { Err(Error::NoProvider) } else { Ok(name) }
    }
}

#[tonic::async_trait]
impl Provider for Closed {
    fn name(&self) -> &'static str {
        NONE
    }

    async fn create_customer(&self, _: &Key, _: &NewCustomer) -> Result<String, Fault> {
        Err(closed())
    }

    async fn create_payment(&self, _: &Key, _: &NewPayment) -> Result<Payment, Fault> {
        Err(closed())
    }

    async fn payment(&self, _: &str) -> Result<Option<Payment>, Fault> {
        Err(closed())
    }

    async fn find_payment(&self, _: &str, _: DateTime<Utc>) -> Result<Option<Payment>, Fault> {
        Err(closed())
    }

    async fn cancel_payment(&self, _: &Key, _: &str) -> Result<Option<Payment>, Fault> {
        Err(closed())
    }

    async fn mandates(&self, _: &str) -> Result<Vec<Mandate>, Fault> {
        Err(closed())
    }

    async fn refund(&self, _: &Key, _: &str, _: Decimal) -> Result<Refund, Fault> {
        Err(closed())
    }

    fn heard(&self, _: &Webhook<'_>) -> Result<Option<String>, Fault> {
        Err(closed())
    }
}

fn closed() -> Fault {
    Fault::Refused { detail: "no payment provider is set up".to_owned(), field: None }
}
