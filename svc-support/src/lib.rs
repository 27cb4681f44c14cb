//! Tickets, messages, channels, statuses and mail domains; mail in and mail out.

mod active_filter;
pub mod address;
mod automatic;
mod channel;
mod clients;
mod domain;
mod error;
mod event_listener;
pub mod intake;
mod message;
mod provision;
mod records;
mod settings;
pub mod smtp;
mod status;
mod ticket;

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use chassis_data::log::snapshot::SharedRecords;
use chassis_data::references::Referrer;
use chassis_data::{Db, Tx};
use chassis_service::server::bind;
use chassis_service::stage::Stage;
use chassis_service::{Runtime, Service};
use chassis_work::Worker;
use chassis_work::mail::{AccountFiles, DeliveryObserver};
use chassis_work::scan::Scan;
use clap::{Args, Command};
use proto::api::event_listener_service_server::EventListenerServiceServer;
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
use crate::message::{DeliveryRecorder, Mailer};
use crate::settings::Settings;
use crate::smtp::MailReceiver;

/// The size of a request that brings a mail, without the mail.
const REQUEST_OVERHEAD: usize = 64 << 10;

/// A process has one of each: the limits on memory and on parsing hold for mail that comes over gRPC and over SMTP
/// together.
pub struct Support {
    db: Db,
    own: OwnDomain,
    clients: Clients,
    mailer: Mailer,
    files: AccountFiles,
    verifier: Verifier,
    intake: Arc<Intake>,
    receiver: MailReceiver,
    mail_listen: Option<SocketAddr>,
}

#[tonic::async_trait]
impl Service for Support {
    const NAME: &'static str = "support";
    const ABOUT: &'static str = "Tickets, messages, channels, statuses and mail domains";
    const KEEPS_FILES: bool = true;

    async fn new(runtime: &Runtime) -> Result<Self, String> {
        let settings = Settings::of(runtime);
        let own = OwnDomain::new(&settings.mail_domain);
        let clients = Clients { outgoing: runtime.outgoing() };
        let memory = MailMemory::new(settings.mail_memory_bytes);
        let intake = Intake::new(runtime.db.clone(), runtime.files()?, own.clone(), clients.clone(), memory);
        let intake = Arc::new(intake);
        let peers = runtime.peers.iter().map(|peer| peer.name().to_owned());
        let verifier = Verifier {
            own: own.clone(),
            dns: Dns { server: settings.dns_server },
            outgoing: runtime.outgoing(),
            senders: peers.filter(|name| name != Self::NAME).collect(),
        };
        Ok(Self {
            db: runtime.db.clone(),
            mailer: Mailer { mailer: runtime.mailer.clone(), own: own.clone() },
            files: AccountFiles::new(runtime.outgoing()),
            receiver: MailReceiver::new(runtime, own.clone(), Arc::clone(&intake)),
            mail_listen: settings.mail_listen,
            own,
            clients,
            verifier,
            intake,
        })
    }

    fn migrations() -> &'static Migrator {
        static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| chassis_derive::migrations!("migrations"));
        &MIGRATIONS
    }

    fn options(command: Command) -> Command {
        Settings::augment_args(command)
    }

    fn routes(self: &Arc<Self>, routes: &mut RoutesBuilder) {
        let db = || self.db.clone();
        let tickets = ticket::rpc::Tickets { db: db(), clients: self.clients.clone() };
        let messages =
            message::rpc::Messages { db: db(), mailer: self.mailer.clone(), files: self.files.clone() };
        let channels = channel::rpc::Channels { db: db(), own: self.own.clone() };
        let domains = domain::rpc::Domains { db: db(), verifier: self.verifier.clone() };
        let intake = MailIntakeServiceServer::from_arc(Arc::clone(&self.intake));
        let intake = intake.max_decoding_message_size(MAX_MAIL_BYTES + REQUEST_OVERHEAD);
        routes
            .add_service(EventListenerServiceServer::new(event_listener::EventListener { db: db() }))
            .add_service(TicketServiceServer::new(tickets))
            .add_service(TicketMessageServiceServer::new(messages))
            .add_service(TicketChannelServiceServer::new(channels))
            .add_service(TicketStatusServiceServer::new(status::rpc::Statuses { db: db() }))
            .add_service(EmailDomainServiceServer::new(domains))
            .add_service(MemoryLimited::new(intake, Arc::clone(self.intake.memory())));
    }

    fn workers(self: &Arc<Self>) -> Vec<Worker> {
        vec![domain::worker(self.verifier.clone())]
    }

    fn records(self: &Arc<Self>) -> SharedRecords {
        let records = Arc::clone(self);
        SharedRecords::new(records)
    }

    fn scans(self: &Arc<Self>) -> Vec<Scan> {
        vec![ticket::scans::stale(), message::scans::unanswered()]
    }

    fn delivery_observer(self: &Arc<Self>) -> Option<Arc<dyn DeliveryObserver>> {
        Some(Arc::new(DeliveryRecorder))
    }

    fn referrers() -> &'static [Referrer] {
        &[Referrer {
            kind: "ticket",
            to: "client",
            table: "support.ticket",
            id: "id",
            column: "client_id",
            condition: "true",
            live: "false",
        }]
    }

    async fn serve_besides(self: Arc<Self>, stop: watch::Receiver<Stage>) -> Result<(), String> {
        let Some(address) = self.mail_listen else { return Ok(()) };
        let listener = bind(address).await?;
        tracing::info!(listen = %address, "receiving mail");
        smtp::serve(listener, self.mail_receiver(), stop).await;
        Ok(())
    }

    async fn provision(&self, tx: &mut Tx<'_>) -> Result<(), chassis_base::Error> {
        Ok(provision::defaults(tx, &self.own).await?)
    }
}

impl Support {
    /// Receives mail over SMTP.
    pub fn mail_receiver(&self) -> MailReceiver {
        self.receiver.clone()
    }
}

/// The `main` of the program. It is here and not there, so that what it shares with the service is compiled once.
pub fn main() -> std::process::ExitCode {
    chassis_service::process::main::<Support>()
}
