//! Documents, payments, products, subscriptions and direct debit.

mod clients;
mod debit;
mod document;
pub mod einvoice;
mod error;
mod heard;
pub mod identity;
mod online;
pub mod page;
mod payment;
mod payment_term;
mod press;
mod product;
mod provision;
mod renderer;
mod sandbox;
mod scans;
pub mod settings;
pub mod subscription;
pub mod tax_rate;

use std::sync::Arc;

use chassis_base::Environment;
use chassis_data::references::Referable;
use chassis_data::{Db, Tx};
use chassis_service::{Runtime, Service};
use chassis_work::Worker;
use chassis_work::mail::AttachmentSource;
use chassis_work::scan::Scan;
use clap::{Args, FromArgMatches};
use proto::api::event_listener_service_server::EventListenerServiceServer;
use proto::billing::direct_debit_service_server::DirectDebitServiceServer;
use proto::billing::document_page_service_server::DocumentPageServiceServer;
use proto::billing::invoice_service_server::InvoiceServiceServer;
use proto::billing::online_payment_service_server::OnlinePaymentServiceServer;
use proto::billing::payment_service_server::PaymentServiceServer;
use proto::billing::product_service_server::ProductServiceServer;
use proto::billing::quote_service_server::QuoteServiceServer;
use proto::billing::sandbox_service_server::SandboxServiceServer;
use proto::billing::settings_service_server::SettingsServiceServer;
use proto::billing::subscription_service_server::SubscriptionServiceServer;
use proto::billing::workorder_service_server::WorkorderServiceServer;
use provider::Provider;
use provider::mollie::{self, Mollie};
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;

use crate::clients::Clients;
use crate::document::attachment::Pdfs;
use crate::document::rpc::{Desk, Shared};
use crate::document::{Kind, Links};
use crate::online::{Closed, Till};
use crate::press::Press;
use crate::sandbox::Sandbox;

pub use error::Error;

pub struct Billing {
    db: Db,
    /// What all that deals with documents works with.
    shared: Arc<Shared>,
    till: Arc<Till>,
}

#[tonic::async_trait]
impl Service for Billing {
    const NAME: &'static str = "billing";
    const ABOUT: &'static str = "Documents, payments, products, subscriptions and direct debit";
    const KEEPS_FILES: bool = true;

    async fn new(runtime: &Runtime) -> Result<Self, String> {
        let till = till(runtime, mollie(runtime)?);
        Ok(Self { db: runtime.db.clone(), shared: shared(runtime), till })
    }

    fn migrations() -> &'static Migrator {
        static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");
        &MIGRATIONS
    }

    fn options(command: clap::Command) -> clap::Command {
        sandbox::Settings::augment_args(mollie::Settings::augment_args(command))
    }

    fn routes(self: &Arc<Self>, routes: &mut RoutesBuilder) {
        let db = || self.db.clone();
        let shared = Arc::clone(&self.shared);
        let till = Arc::clone(&self.till);
        let pages = page::rpc::Pages { shared: Arc::clone(&shared), till: Arc::clone(&till) };
        let desk = |kind| Desk { kind, shared: Arc::clone(&shared) };
        routes
            .add_service(EventListenerServiceServer::new(heard::Heard { db: db() }))
            .add_service(InvoiceServiceServer::new(desk(Kind::Invoice)))
            .add_service(QuoteServiceServer::new(desk(Kind::Quote)))
            .add_service(WorkorderServiceServer::new(desk(Kind::Workorder)))
            .add_service(DocumentPageServiceServer::new(pages))
            .add_service(DirectDebitServiceServer::new(debit::rpc::DirectDebit { till: Arc::clone(&till) }))
            .add_service(OnlinePaymentServiceServer::new(online::rpc::OnlinePayments {
                till: Arc::clone(&till),
            }))
            .add_service(SandboxServiceServer::new(sandbox::rpc::Checkouts { till }))
            .add_service(PaymentServiceServer::new(payment::rpc::Payments { db: db() }))
            .add_service(ProductServiceServer::new(product::rpc::Products { db: db() }))
            .add_service(SubscriptionServiceServer::new(subscription::rpc::Subscriptions { shared }))
            .add_service(SettingsServiceServer::new(settings::rpc::SettingsRpc { db: db() }));
    }

    fn workers(self: &Arc<Self>) -> Vec<Worker> {
        let till = Arc::clone(&self.till);
        let billing = subscription::worker(Arc::clone(&self.shared), Arc::clone(&till));
        let mut workers = vec![billing, online::worker(Arc::clone(&till)), debit::worker(Arc::clone(&till))];
        match till.provider.name() {
            sandbox::NAME => {
                tracing::warn!(
                    by_default = till.sandbox_by_default,
                    "accounts may pay in the sandbox: no money moves, and anyone can say that they paid"
                );
                workers.push(sandbox::worker(till));
            }
            online::NONE => {
                tracing::warn!("nothing can be paid or collected online: MOLLIE_API_KEY is not set");
            }
            _ => {}
        }
        workers
    }

    fn scans(self: &Arc<Self>) -> Vec<Scan> {
        scans::all()
    }

    fn referables() -> &'static [Referable] {
        const TABLE: &str = "billing.document";
        &[
            Referable { kind: "invoice", table: TABLE, condition: "kind = 'invoice'" },
            Referable { kind: "quote", table: TABLE, condition: "kind = 'quote'" },
            Referable { kind: "workorder", table: TABLE, condition: "kind = 'workorder'" },
        ]
    }

    async fn provision(&self, tx: &mut Tx<'_>) -> Result<(), chassis_base::Error> {
        Ok(provision::defaults(tx).await?)
    }

    fn attachments(self: &Arc<Self>) -> Option<Arc<dyn AttachmentSource>> {
        Some(Arc::new(Pdfs { db: self.db.clone(), press: self.shared.press.clone() }))
    }
}

fn clients(runtime: &Runtime) -> Clients {
    Clients { outgoing: runtime.outgoing() }
}

/// Mollie, when it has a key.
fn mollie(runtime: &Runtime) -> Result<Option<Mollie>, String> {
    let settings = mollie::Settings::from_arg_matches(&runtime.options).map_err(|fault| fault.to_string())?;
    settings.is_set().then(|| Mollie::new(&settings)).transpose()
}

fn is_development(runtime: &Runtime) -> bool {
    let environment = runtime.options.try_get_one::<Environment>("environment").ok().flatten();
    environment == Some(&Environment::Development)
}

/// Whether the sandbox may be the provider. Not in production, unless the operator allows it: anyone can say there that
/// they paid.
fn allows_sandbox(runtime: &Runtime) -> bool {
    let settings = sandbox::Settings::from_arg_matches(&runtime.options);
    is_development(runtime) || settings.is_ok_and(|own| own.sandbox_in_production)
}

/// Where payments are made.
fn till(runtime: &Runtime, mollie: Option<Mollie>) -> Arc<Till> {
    let base: Arc<str> = runtime.public_url.trim_end_matches('/').into();
    let provider: Arc<dyn Provider> = match mollie {
        Some(mollie) => Arc::new(mollie),
        None if allows_sandbox(runtime) => Arc::new(Sandbox {
            db: runtime.db.clone(),
            tokens: runtime.tokens.clone(),
            base: Arc::clone(&base),
        }),
        None => Arc::new(Closed),
    };
    Arc::new(Till {
        db: runtime.db.clone(),
        provider,
        clients: clients(runtime),
        base,
        sandbox_by_default: is_development(runtime),
    })
}

/// What all that deals with documents works with.
fn shared(runtime: &Runtime) -> Arc<Shared> {
    let clients = clients(runtime);
    let press = Press::new(runtime.db.clone(), runtime.files.clone(), clients.clone());
    let links = Links::new(&runtime.public_url);
    Arc::new(Shared { db: runtime.db.clone(), clients, links, press, post: runtime.mailer.clone() })
}
