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

use chassis::config::Environment;
use chassis::mail::AttachmentSource;
use chassis::references::Referable;
use chassis::scan::Scan;
use chassis::{Runtime, Service, Tx, Worker};
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

pub struct Billing;

#[tonic::async_trait]
impl Service for Billing {
    const NAME: &'static str = "billing";
    const ABOUT: &'static str = "Documents, payments, products, subscriptions and direct debit";
    const KEEPS_FILES: bool = true;

    fn migrations() -> &'static Migrator {
        static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");
        &MIGRATIONS
    }

    fn options(command: clap::Command) -> clap::Command {
        sandbox::Settings::augment_args(mollie::Settings::augment_args(command))
    }

    fn check(runtime: &Runtime) -> Result<(), String> {
        mollie(runtime).map(drop)
    }

    fn routes(runtime: &Runtime, routes: &mut RoutesBuilder) {
        let db = || runtime.db.clone();
        let shared = shared(runtime);
        let till = till(runtime);
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

    fn workers(runtime: &Runtime) -> Vec<Worker> {
        let till = till(runtime);
        let billing = subscription::worker(shared(runtime), Arc::clone(&till));
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

    fn scans(_: &Runtime) -> Vec<Scan> {
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

    async fn provision(tx: &mut Tx<'_>) -> Result<(), chassis::Error> {
        Ok(provision::defaults(tx).await?)
    }

    fn attachments(runtime: &Runtime) -> Option<Arc<dyn AttachmentSource>> {
        let press = shared(runtime).press.clone();
        Some(Arc::new(Pdfs { db: runtime.db.clone(), press }))
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
fn till(runtime: &Runtime) -> Arc<Till> {
    let base: Arc<str> = runtime.public_url.trim_end_matches('/').into();
    let provider: Arc<dyn Provider> = match mollie(runtime) {
        Ok(Some(mollie)) => Arc::new(mollie),
        Ok(None) if allows_sandbox(runtime) => Arc::new(Sandbox {
            db: runtime.db.clone(),
            tokens: runtime.tokens.clone(),
            base: Arc::clone(&base),
        }),
        Ok(None) => Arc::new(Closed),
        Err(fault) => unreachable!("the settings were checked before: {fault}"),
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
    Arc::new(Shared { db: runtime.db.clone(), clients, links, press, post: runtime.post.clone() })
}
