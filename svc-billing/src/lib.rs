//! Documents, payments, products, subscriptions and direct debit.
//!
//! So far the service only learns of its accounts; its operations are added resource by resource.

pub mod einvoice;

use chassis::{Runtime, Service};
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;

pub struct Billing;

#[tonic::async_trait]
impl Service for Billing {
    const NAME: &'static str = "billing";
    const ABOUT: &'static str = "Documents, payments, products, subscriptions and direct debit";

    fn migrations() -> &'static Migrator {
        static NONE_YET: Migrator = Migrator::DEFAULT;
        &NONE_YET
    }

    fn routes(_: &Runtime, _: &mut RoutesBuilder) {}
}
