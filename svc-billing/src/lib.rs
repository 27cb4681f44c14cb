//! Documents, payments, products, subscriptions and direct debit.

mod clients;
mod debit;
mod document;
mod document_page;
pub mod einvoice;
mod error;
mod event_listener;
pub mod identity;
mod language;
mod mandate;
mod money;
mod online_payment;
pub mod page;
mod payment;
mod payment_term;
mod processor;
mod product;
mod provision;
mod records;
mod renderer;
mod sandbox;
pub mod settings;
mod settings_base;
mod settings_service;
mod subscription;
mod tax_rate;

use std::sync::{Arc, LazyLock};

use chassis_base::Environment;
use chassis_data::log::snapshot::SharedRecords;
use chassis_data::references::{Referable, Referrer};
use chassis_data::{Db, Tx};
use chassis_service::{Runtime, Service};
use chassis_work::Worker;
use chassis_work::mail::{AccountFiles, AttachmentSource, DeliveryObserver};
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
use crate::document::attachment::PdfAttachments;
use crate::document::delivery::SentDocuments;
use crate::document::pdf_renderer::PdfRenderer;
use crate::document::rpc::DocumentService;
use crate::document::shared::Shared;
use crate::document::{Kind, Links};
use crate::event_listener::EventListener;
use crate::processor::{NO_PROVIDER, NoProvider, PaymentProcessor, ProviderAccess};
use crate::sandbox::Sandbox;

pub use error::Error;

pub struct Billing {
    db: Db,
    /// What everything that deals with documents shares.
    shared: Arc<Shared>,
    processor: Arc<PaymentProcessor>,
}

#[tonic::async_trait]
impl Service for Billing {
    const NAME: &'static str = "billing";
    const ABOUT: &'static str = "Documents, payments, products, subscriptions and direct debit";
    const KEEPS_FILES: bool = true;

    async fn new(runtime: &Runtime) -> Result<Self, String> {
        use_fonts(runtime)?;
        let clients = Clients { outgoing: runtime.outgoing() };
        let processor = payment_processor(runtime, clients.clone(), mollie(runtime)?);
        Ok(Self { db: runtime.db.clone(), shared: shared(runtime, clients)?, processor })
    }

    fn migrations() -> &'static Migrator {
        static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| chassis_derive::migrations!("migrations"));
        &MIGRATIONS
    }

    fn options(command: clap::Command) -> clap::Command {
        let command = mollie::Settings::augment_args(command);
        renderer::Settings::augment_args(sandbox::Settings::augment_args(command))
    }

    fn routes(self: &Arc<Self>, routes: &mut RoutesBuilder) {
        let db = || self.db.clone();
        let shared = Arc::clone(&self.shared);
        let links = || self.shared.links.clone();
        let processor = Arc::clone(&self.processor);
        let pages =
            document_page::rpc::Pages { shared: Arc::clone(&shared), processor: Arc::clone(&processor) };
        let documents = |kind| DocumentService { kind, shared: Arc::clone(&shared) };
        routes
            .add_service(EventListenerServiceServer::new(EventListener { db: db(), links: links() }))
            .add_service(InvoiceServiceServer::new(documents(Kind::Invoice)))
            .add_service(QuoteServiceServer::new(documents(Kind::Quote)))
            .add_service(WorkorderServiceServer::new(documents(Kind::Workorder)))
            .add_service(DocumentPageServiceServer::new(pages))
            .add_service(DirectDebitServiceServer::new(debit::rpc::DirectDebitRpc {
                processor: Arc::clone(&processor),
            }))
            .add_service(OnlinePaymentServiceServer::new(processor::rpc::OnlinePaymentRpc {
                processor: Arc::clone(&processor),
            }))
            .add_service(SandboxServiceServer::new(sandbox::rpc::SandboxRpc { processor }))
            .add_service(PaymentServiceServer::new(payment::rpc::PaymentRpc { db: db(), links: links() }))
            .add_service(ProductServiceServer::new(product::rpc::Products { db: db() }))
            .add_service(SubscriptionServiceServer::new(subscription::rpc::SubscriptionRpc { shared }))
            .add_service(SettingsServiceServer::new(settings_service::SettingsRpc { db: db() }));
    }

    fn workers(self: &Arc<Self>) -> Vec<Worker> {
        let processor = Arc::clone(&self.processor);
        let mut workers = vec![
            subscription::worker(Arc::clone(&self.shared), Arc::clone(&processor)),
            processor::worker(Arc::clone(&processor)),
            mandate::worker(Arc::clone(&processor.provider)),
            document::pdf_worker::worker(Arc::clone(&self.shared)),
        ];
        match processor.provider.name() {
            sandbox::NAME => {
                tracing::warn!(
                    access = ?processor.access,
                    "accounts may pay in the sandbox: no money moves, and anyone can claim to have paid"
                );
                workers.push(sandbox::worker(processor));
            }
            NO_PROVIDER => {
                tracing::warn!("nothing can be paid or collected online: MOLLIE_API_KEY is not set");
            }
            _ => {}
        }
        workers
    }

    fn records(self: &Arc<Self>) -> SharedRecords {
        let records = Arc::clone(self);
        SharedRecords::new(records)
    }

    fn scans(self: &Arc<Self>) -> Vec<Scan> {
        document::scans::all().into_iter().chain(subscription::scans::all()).collect()
    }

    fn referables() -> &'static [Referable] {
        const TABLE: &str = "billing.document";
        &[
            Referable { kind: "invoice", table: TABLE, condition: "kind = 'invoice'" },
            Referable { kind: "quote", table: TABLE, condition: "kind = 'quote'" },
            Referable { kind: "workorder", table: TABLE, condition: "kind = 'workorder'" },
        ]
    }

    fn referrers() -> &'static [Referrer] {
        const fn document(kind: &'static str, condition: &'static str) -> Referrer {
            let (table, live) = ("billing.document", "not is_final");
            Referrer { kind, to: "client", table, id: "id", column: "client_id", condition, live }
        }
        const REFERRERS: &[Referrer] = &[
            document("invoice", "kind = 'invoice'"),
            document("quote", "kind = 'quote'"),
            document("workorder", "kind = 'workorder'"),
            Referrer {
                kind: "subscription",
                to: "client",
                table: "billing.subscription",
                id: "id",
                column: "client_id",
                condition: "true",
                live: "status <> 'ended'",
            },
            Referrer {
                kind: "mandate",
                to: "client",
                table: "billing.debtor",
                id: "client_id",
                column: "client_id",
                condition: "true",
                live: "(mandate_status in ('pending', 'valid') or exists (select from billing.online_payment asked \
                       where asked.account_id = $1 and asked.client_id = debtor.client_id \
                       and asked.purpose = 'verification' and asked.is_open))",
            },
        ];
        REFERRERS
    }

    async fn provision(&self, tx: &mut Tx<'_>) -> Result<(), chassis_base::Error> {
        Ok(provision::defaults(tx).await?)
    }

    fn attachments(self: &Arc<Self>) -> Option<Arc<dyn AttachmentSource>> {
        let renderer = self.shared.renderer.clone();
        Some(Arc::new(PdfAttachments { db: self.db.clone(), renderer }))
    }

    fn delivery_observer(self: &Arc<Self>) -> Option<Arc<dyn DeliveryObserver>> {
        Some(Arc::new(SentDocuments { links: self.shared.links.clone() }))
    }
}

/// Mollie, when it has a key.
fn mollie(runtime: &Runtime) -> Result<Option<Mollie>, String> {
    let settings = mollie::Settings::from_arg_matches(&runtime.options).map_err(|fault| fault.to_string())?;
    settings.is_set().then(|| Mollie::new(&settings)).transpose()
}

fn use_fonts(runtime: &Runtime) -> Result<(), String> {
    let settings =
        renderer::Settings::from_arg_matches(&runtime.options).map_err(|fault| fault.to_string())?;
    if let Some(folder) = settings.fonts_dir {
        if !folder.is_dir() {
            return Err(format!("FONTS_DIR is {}, which is no folder", folder.display()));
        }
        render::use_fonts_of(folder);
    }
    Ok(())
}

fn is_development(runtime: &Runtime) -> bool {
    runtime.environment == Environment::Development
}

/// Whether the sandbox may be the provider. Not in production, unless the operator allows it: anyone can claim to
/// have paid there.
fn allows_sandbox(runtime: &Runtime) -> bool {
    let settings = sandbox::Settings::from_arg_matches(&runtime.options);
    is_development(runtime) || settings.is_ok_and(|own| own.sandbox_in_production)
}

/// The provider of the installation, and which accounts use it.
fn payment_processor(runtime: &Runtime, clients: Clients, mollie: Option<Mollie>) -> Arc<PaymentProcessor> {
    let base: Arc<str> = runtime.public_url.trim_end_matches('/').into();
    let (provider, access): (Arc<dyn Provider>, _) = match mollie {
        Some(mollie) => (Arc::new(mollie), ProviderAccess::EveryAccount),
        None if allows_sandbox(runtime) => {
            let sandbox = Sandbox { db: runtime.db.clone(), base: Arc::clone(&base) };
            (Arc::new(sandbox), ProviderAccess::OptIn { default: is_development(runtime) })
        }
        None => (Arc::new(NoProvider), ProviderAccess::EveryAccount),
    };
    Arc::new(PaymentProcessor { db: runtime.db.clone(), provider, access, clients, base })
}

/// What everything that deals with documents shares.
fn shared(runtime: &Runtime, clients: Clients) -> Result<Arc<Shared>, String> {
    let links = Links::new(&runtime.public_url);
    let renderer = PdfRenderer::new(runtime.db.clone(), runtime.files()?, clients.clone(), links.clone());
    let files = AccountFiles::new(runtime.outgoing());
    let mailer = runtime.mailer.clone();
    Ok(Arc::new(Shared { db: runtime.db.clone(), clients, links, renderer, mailer, files }))
}

/// The `main` of the program. It is here and not there, so that what it shares with the service is compiled once.
pub fn main() -> std::process::ExitCode {
    chassis_service::process::main::<Billing>()
}
