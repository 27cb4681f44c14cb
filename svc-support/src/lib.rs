//! Tickets, messages, channels, statuses and mail domains; mail in and mail out.

mod active_filter;
pub mod address;
mod automatic;
mod channel;
mod clients;
mod domain;
mod error;
pub mod intake;
mod message;
mod provision;
mod settings;
pub mod smtp;
mod status;
mod ticket;

use std::sync::Arc;

use chassis::scan::Scan;
use chassis::server::{Stage, bind};
use chassis::worker::Worker;
use chassis::{Runtime, Service, Tx};
use clap::{Args, Command};
use proto::support::email_domain_service_server::EmailDomainServiceServer;
use proto::support::mail_intake_service_server::MailIntakeServiceServer;
use proto::support::ticket_channel_service_server::TicketChannelServiceServer;
use proto::support::ticket_message_service_server::TicketMessageServiceServer;
use proto::support::ticket_service_server::TicketServiceServer;
use proto::support::ticket_status_service_server::TicketStatusServiceServer;
use sqlx::migrate::Migrator;
use tokio::sync::watch;
use tonic::service::RoutesBuilder;

use crate::address::OwnDomain;
use crate::clients::Clients;
use crate::domain::{Dns, Verifier};
use crate::intake::memory::MailMemory;
use crate::intake::memory_layer::MemoryLimited;
use crate::intake::{Intake, MAX_MAIL_BYTES};
use crate::message::Mailer;
use crate::settings::Settings;
use crate::smtp::MailReceiver;

pub use error::Error;

/// The size of a request that brings a mail, without the mail.
const REQUEST_OVERHEAD: usize = 64 << 10;

pub struct Support;

#[tonic::async_trait]
impl Service for Support {
    const NAME: &'static str = "support";
    const ABOUT: &'static str = "Tickets, messages, channels, statuses and mail domains";
    const KEEPS_FILES: bool = true;

    fn migrations() -> &'static Migrator {
        static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");
        &MIGRATIONS
    }

    fn options(command: Command) -> Command {
        Settings::augment_args(command)
    }

    fn routes(runtime: &Runtime, routes: &mut RoutesBuilder) {
        let db = || runtime.db.clone();
        let shared = Components::of(runtime);
        let tickets = ticket::rpc::Tickets { db: db(), clients: shared.clients.clone() };
        let messages = message::rpc::Messages { db: db(), mailer: shared.mailer.clone() };
        let channels = channel::rpc::Channels { db: db(), own: shared.own.clone() };
        let domains = domain::rpc::Domains { db: db(), verifier: shared.verifier.clone() };
        let intake = MailIntakeServiceServer::from_arc(Arc::clone(&shared.intake));
        let intake = intake.max_decoding_message_size(MAX_MAIL_BYTES + REQUEST_OVERHEAD);
        routes
            .add_service(TicketServiceServer::new(tickets))
            .add_service(TicketMessageServiceServer::new(messages))
            .add_service(TicketChannelServiceServer::new(channels))
            .add_service(TicketStatusServiceServer::new(status::rpc::Statuses { db: db() }))
            .add_service(EmailDomainServiceServer::new(domains))
            .add_service(MemoryLimited::new(intake, Arc::clone(shared.intake.memory())));
    }

    fn workers(runtime: &Runtime) -> Vec<Worker> {
        vec![domain::worker(Components::of(runtime).verifier.clone())]
    }

    fn scans(_runtime: &Runtime) -> Vec<Scan> {
        vec![ticket::scans::stale(), message::scans::unanswered()]
    }

    async fn serve_besides(runtime: Runtime, stop: watch::Receiver<Stage>) -> Result<(), String> {
        let Some(address) = Settings::of(&runtime).mail_listen else { return Ok(()) };
        let listener = bind(address).await?;
        tracing::info!(listen = %address, "receiving mail");
        smtp::serve(listener, mail_receiver(&runtime), stop).await;
        Ok(())
    }

    async fn provision(tx: &mut Tx<'_>) -> Result<(), chassis::Error> {
        Ok(provision::defaults(tx).await?)
    }
}

/// What the hooks of the service share. A process has one of each: the limits on memory and on parsing hold for mail
/// that comes over gRPC and over SMTP together.
struct Components {
    own: OwnDomain,
    clients: Clients,
    mailer: Mailer,
    verifier: Verifier,
    intake: Arc<Intake>,
}

impl Components {
    fn of(runtime: &Runtime) -> Arc<Self> {
        runtime.shared(|| Arc::new(Self::new(runtime)))
    }

    fn new(runtime: &Runtime) -> Self {
        let settings = Settings::of(runtime);
        let own = OwnDomain::new(&settings.mail_domain);
        let clients = Clients { outgoing: runtime.outgoing() };
        let memory = MailMemory::new(settings.mail_memory_bytes);
        let intake =
            Intake::new(runtime.db.clone(), runtime.files.clone(), own.clone(), clients.clone(), memory);
        let peers = runtime.peers.iter().map(|peer| peer.name().to_owned());
        let verifier = Verifier {
            own: own.clone(),
            dns: Dns { server: settings.dns_server },
            outgoing: runtime.outgoing(),
            senders: peers.filter(|name| name != Support::NAME).collect(),
        };
        let mailer = Mailer { post: runtime.post.clone(), own: own.clone() };
        Self { own, clients, mailer, verifier, intake: Arc::new(intake) }
    }
}

/// Receives the mail that comes in over SMTP.
pub fn mail_receiver(runtime: &Runtime) -> MailReceiver {
    let shared = Components::of(runtime);
    MailReceiver::new(runtime, shared.own.clone(), Arc::clone(&shared.intake))
}
