//! Documents, payments, products, subscriptions and direct debit, and the settings that they are made with.

mod error;
pub mod identity;
mod payment_term;
mod product;
mod provision;
pub mod settings;
pub mod tax_rate;

use chassis::{Runtime, Service, Tx};
use proto::billing::product_service_server::ProductServiceServer;
use proto::billing::settings_service_server::SettingsServiceServer;
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;

pub use error::Error;

pub struct Billing;

#[tonic::async_trait]
impl Service for Billing {
    const NAME: &'static str = "billing";
    const ABOUT: &'static str = "Documents, payments, products, subscriptions and direct debit";

    fn migrations() -> &'static Migrator {
        static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");
        &MIGRATIONS
    }

    fn routes(runtime: &Runtime, routes: &mut RoutesBuilder) {
        let db = || runtime.db.clone();
        routes
            .add_service(ProductServiceServer::new(product::rpc::Products { db: db() }))
            .add_service(SettingsServiceServer::new(settings::rpc::SettingsRpc { db: db() }));
    }

    async fn provision(tx: &mut Tx<'_>) -> Result<(), chassis::Error> {
        Ok(provision::defaults(tx).await?)
    }
}
