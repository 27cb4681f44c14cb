//! Tickets, messages, channels, statuses and mail domains; mail in and mail out.

pub mod address;
mod channel;
mod clients;
mod domain;
mod error;
pub mod intake;
mod message;
mod provision;
mod scans;
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
use crate::domain::Inspector;
use crate::intake::bounded::Bounded;
use crate::intake::memory::Memory;
use crate::intake::rpc::Intake;
use crate::message::Desk;
use crate::settings::Settings;
use crate::smtp::Office;

pub use error::Error;

/// What a request around a mail may have besides the mail.
const AROUND_A_MAIL: usize = 64 << 10;

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
        let (db, own) = (|| runtime.db.clone(), || own_domain(runtime));
        let desk = Desk { post: runtime.post.clone(), own: own() };
        let clients = clients(runtime);
        let domains = domain::rpc::Domains { db: db(), inspector: inspector(runtime) };
        let intake = intake(runtime);
        let memory = Arc::clone(&intake.memory);
        let mails = MailIntakeServiceServer::from_arc(intake);
        let mails = mails.max_decoding_message_size(intake::MOST + AROUND_A_MAIL);
        routes
            .add_service(TicketServiceServer::new(ticket::rpc::Tickets { db: db(), clients }))
            .add_service(TicketMessageServiceServer::new(message::rpc::Messages { db: db(), desk }))
            .add_service(TicketChannelServiceServer::new(channel::rpc::Channels { db: db(), own: own() }))
            .add_service(TicketStatusServiceServer::new(status::rpc::Statuses { db: db() }))
            .add_service(EmailDomainServiceServer::new(domains))
            .add_service(Bounded::new(mails, memory));
    }

    fn workers(runtime: &Runtime) -> Vec<Worker> {
        vec![domain::worker(inspector(runtime))]
    }

    fn scans(_runtime: &Runtime) -> Vec<Scan> {
        scans::all()
    }

    async fn serve_besides(runtime: Runtime, stop: watch::Receiver<Stage>) -> Result<(), String> {
        let Some(address) = Settings::of(&runtime).mail_listen else { return Ok(()) };
        let listener = bind(address).await?;
        tracing::info!(listen = %address, "taking mail in");
        smtp::serve(listener, office(&runtime), stop).await;
        Ok(())
    }

    async fn provision(tx: &mut Tx<'_>) -> Result<(), chassis::Error> {
        Ok(provision::defaults(tx).await?)
    }
}

fn inspector(runtime: &Runtime) -> Inspector {
    let senders = runtime.peers.iter().map(|peer| peer.name().to_owned());
    Inspector {
        own: own_domain(runtime),
        dns: domain::Dns { server: Settings::of(runtime).dns_server },
        outgoing: runtime.outgoing(),
        senders: senders.filter(|name| name != Support::NAME).collect(),
    }
}

fn own_domain(runtime: &Runtime) -> OwnDomain {
    OwnDomain::new(&Settings::of(runtime).mail_domain)
}

fn clients(runtime: &Runtime) -> Clients {
    Clients { outgoing: runtime.outgoing() }
}

/// The one that this process has: what it bounds is bounded for mail that comes either way.
fn intake(runtime: &Runtime) -> Arc<Intake> {
    runtime.shared(|| {
        let memory = Memory::new(Settings::of(runtime).mail_memory_bytes);
        let (db, files) = (runtime.db.clone(), runtime.files.clone());
        Arc::new(Intake::new(db, files, own_domain(runtime), clients(runtime), memory))
    })
}

/// Where mail that comes in over SMTP is handed to.
pub fn office(runtime: &Runtime) -> Office {
    Office::new(runtime, own_domain(runtime), intake(runtime))
}
