//! No provider at all: in use where none is set up and the sandbox may not be. Nothing is begun with it, see
//! [`Till::begins_with`]; what was begun with another waits for that one to come back.

use chrono::{DateTime, Utc};
use provider::{Fault, Key, Mandate, NewCustomer, NewPayment, Payment, Provider, Refund, Webhook};
use rust_decimal::Decimal;

use super::Till;
use crate::Error;

const NAME: &str = "none";

pub struct Closed;

impl Till {
    /// The name of the provider that something new is begun with, if there is one.
    pub fn begins_with(&self) -> Result<&'static str, Error> {
        if self.is_closed() { Err(Error::NoProvider) } else { Ok(self.provider.name()) }
    }

    /// Whether nothing can be begun here.
    pub fn is_closed(&self) -> bool {
        self.provider.name() == NAME
    }
}

#[tonic::async_trait]
impl Provider for Closed {
    fn name(&self) -> &'static str {
        NAME
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
