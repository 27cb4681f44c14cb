//! Automation: receives the events of every service and those that integrations fire, stores each once, runs the flows
//! that they trigger and delivers them to webhook endpoints. Knows no other service's tables; calls the others by the
//! contract alone.
//!
//! Imports run one way, from the last of these to the first: `dispatcher` and `template`, `egress`, `event`,
//! `definition`, `webhook`, `run`, `ingest`, `flow`.

mod definition;
mod dispatcher;
mod duration;
mod egress;
mod error;
mod event;
mod flow;
mod ingest;
mod purge;
mod records;
mod run;
mod template;
mod text;
mod webhook;

use std::sync::{Arc, LazyLock};

use chassis_base::Environment;
use chassis_data::Tx;
use chassis_data::log::snapshot::SharedRecords;
use chassis_service::{Runtime, Service};
use chassis_work::Worker;
use clap::{Arg, ArgAction, ArgMatches, Command};
use egress::Egress;
use proto::api::event_listener_service_server::EventListenerServiceServer;
use proto::automation::event_service_server::EventServiceServer;
use proto::automation::flow_service_server::FlowServiceServer;
use proto::automation::run_service_server::RunServiceServer;
use proto::automation::trigger_service_server::TriggerServiceServer;
use proto::automation::webhook_service_server::WebhookServiceServer;
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;

/// The service.
pub struct Automation {
    runtime: Runtime,
    egress: Egress,
    sender: Arc<webhook::Sender>,
}

/// Lets flows and webhooks reach private networks too.
const ALLOW_PRIVATE_NETWORKS: &str = "allow-private-networks";

#[tonic::async_trait]
impl Service for Automation {
    const NAME: &'static str = "automation";
    const ABOUT: &'static str = "Events, triggers, flows and their runs, webhooks";

    async fn new(runtime: &Runtime) -> Result<Self, String> {
        if allows_private_networks(runtime) && runtime.environment != Environment::Development {
            return Err(
                "ALLOW_PRIVATE_NETWORKS is for development only, as an account could reach what is not its \
                        own: unset it, or set ENVIRONMENT=development"
                    .to_owned(),
            );
        }
        let egress = Egress::new(allows_private_networks(runtime));
        let sender = Arc::new(webhook::Sender::new(runtime, egress.clone()));
        Ok(Self { runtime: runtime.clone(), egress, sender })
    }

    fn migrations() -> &'static Migrator {
        static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| chassis_derive::migrations!("migrations"));
        &MIGRATIONS
    }

    fn options(command: Command) -> Command {
        let private = Arg::new(ALLOW_PRIVATE_NETWORKS)
            .long(ALLOW_PRIVATE_NETWORKS)
            .env("ALLOW_PRIVATE_NETWORKS")
            .action(ArgAction::SetTrue)
            .global(true)
            .help("Let flows and webhooks reach this machine and private networks; in development only");
        command.arg(private).subcommand(flow::command_line::command())
    }

    fn routes(self: &Arc<Self>, routes: &mut RoutesBuilder) {
        let db = || self.runtime.db.clone();
        let webhooks = webhook::Webhooks {
            db: db(),
            sender: Arc::clone(&self.sender),
            allow_private: allows_private_networks(&self.runtime),
        };
        routes
            .add_service(EventListenerServiceServer::new(ingest::EventListener { db: db() }))
            .add_service(EventServiceServer::new(event::Events { db: db() }))
            .add_service(FlowServiceServer::new(flow::Flows::new(&self.runtime)))
            .add_service(RunServiceServer::new(run::Runs { db: db() }))
            .add_service(TriggerServiceServer::new(ingest::Triggers { db: db() }))
            .add_service(WebhookServiceServer::new(webhooks));
    }

    fn workers(self: &Arc<Self>) -> Vec<Worker> {
        let mut workers = vec![
            run::worker::worker(&self.runtime, self.egress.clone()),
            webhook::worker::worker(Arc::clone(&self.sender)),
            flow::worker::worker(),
        ];
        workers.extend(purge::workers());
        workers
    }

    fn records(self: &Arc<Self>) -> SharedRecords {
        let records = Arc::clone(self);
        SharedRecords::new(records)
    }

    async fn command(runtime: &Runtime, name: &str, arguments: &ArgMatches) -> Result<(), String> {
        match name {
            flow::command_line::NAME => flow::command_line::run(runtime, arguments).await,
            other => Err(format!("there is no command {other}")),
        }
    }

    async fn provision(&self, tx: &mut Tx<'_>) -> Result<(), chassis_base::Error> {
        Ok(flow::provision::install(tx).await?)
    }
}

fn allows_private_networks(runtime: &Runtime) -> bool {
    runtime.options.get_flag(ALLOW_PRIVATE_NETWORKS)
}

/// The `main` of the program. It is here and not there, so that what it shares with the service is compiled once.
pub fn main() -> std::process::ExitCode {
    chassis_service::process::main::<Automation>()
}
