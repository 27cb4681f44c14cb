//! Documents, payments, products, subscriptions and direct debit.

mod clients;
mod document;
pub mod einvoice;
mod error;
mod heard;
pub mod identity;
pub mod page;
mod payment;
mod payment_term;
mod press;
mod product;
mod provision;
pub mod settings;
pub mod tax_rate;

use std::sync::Arc;

use chassis::mail::AttachmentSource;
use chassis::references::Referable;
use chassis::{Runtime, Service, Tx};
use proto::api::event_listener_service_server::EventListenerServiceServer;
use proto::billing::document_page_service_server::DocumentPageServiceServer;
use proto::billing::invoice_service_server::InvoiceServiceServer;
use proto::billing::payment_service_server::PaymentServiceServer;
use proto::billing::product_service_server::ProductServiceServer;
use proto::billing::quote_service_server::QuoteServiceServer;
use proto::billing::settings_service_server::SettingsServiceServer;
use proto::billing::workorder_service_server::WorkorderServiceServer;
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;

use crate::clients::Clients;
use crate::document::attachment::Pdfs;
use crate::document::rpc::{Desk, Shared};
use crate::document::{Kind, Links};
use crate::press::Press;

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
        let shared = shared(runtime);
        let desk = |kind| Desk { kind, shared: Arc::clone(&shared) };
        routes
            .add_service(EventListenerServiceServer::new(heard::Heard { db: db() }))
            .add_service(InvoiceServiceServer::new(desk(Kind::Invoice)))
            .add_service(QuoteServiceServer::new(desk(Kind::Quote)))
            .add_service(WorkorderServiceServer::new(desk(Kind::Workorder)))
            .add_service(DocumentPageServiceServer::new(page::rpc::Pages { shared: Arc::clone(&shared) }))
            .add_service(PaymentServiceServer::new(payment::rpc::Payments { db: db() }))
            .add_service(ProductServiceServer::new(product::rpc::Products { db: db() }))
            .add_service(SettingsServiceServer::new(settings::rpc::SettingsRpc { db: db() }));
    }

    fn referables() -> &'static [Referable] {
        const TABLE: &str = "billing.document";
        &[
            Referable { kind: "invoice", table: TABLE, condition: "kind = 'invoice'" },
            Referable { kind: "quote", table: TABLE, condition: "kind = 'quote'" },
            Referable { kind: "workorder", table: TABLE, condition: "kind = 'workorder'" },
        ]
    }

    async fn provision(tx: &mut Tx<'_>) -> Result<(), chassis::Error> {
        Ok(provision::defaults(tx).await?)
    }

    fn attachments(runtime: &Runtime) -> Option<Arc<dyn AttachmentSource>> {
        let press = shared(runtime).press.clone();
        Some(Arc::new(Pdfs { db: runtime.db.clone(), press }))
    }
}

/// What all that deals with documents works with.
fn shared(runtime: &Runtime) -> Arc<Shared> {
    let clients = Clients { outgoing: runtime.outgoing() };
    let press = Press::new(runtime.db.clone(), runtime.files.clone(), clients.clone());
    let links = Links::new(&runtime.public_url);
    Arc::new(Shared { db: runtime.db.clone(), clients, links, press, post: runtime.post.clone() })
}
