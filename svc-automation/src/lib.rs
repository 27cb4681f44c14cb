//! Automation: hears the events of every service and those that integrations fire, keeps each once, runs the flows that
//! wait for them and tells the endpoints that want to know. Knows no other service's tables; calls the others by the
//! contract alone.

mod duration;
mod error;
mod event;
mod flow;
mod outside;
mod pump;
mod purge;
mod run;
mod template;
mod trigger;
mod webhook;

use std::sync::Arc;

use chassis_base::Environment;
use chassis_data::Tx;
use chassis_service::{Runtime, Service};
use chassis_work::Worker;
use clap::{Arg, ArgAction, ArgMatches, Command};
use outside::Outside;
use proto::api::event_listener_service_server::EventListenerServiceServer;
use proto::automation::event_service_server::EventServiceServer;
use proto::automation::flow_service_server::FlowServiceServer;
use proto::automation::run_service_server::RunServiceServer;
use proto::automation::trigger_service_server::TriggerServiceServer;
use proto::automation::webhook_service_server::WebhookServiceServer;
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;

pub use error::Error;

/// The service.
pub struct Automation {
    runtime: Runtime,
    outside: Outside,
}

/// Also lets flows and webhooks reach private networks.
const PRIVATE: &str = "allow-private-networks";

#[tonic::async_trait]
impl Service for Automation {
    const NAME: &'static str = "automation";
    const ABOUT: &'static str = "Events, triggers, flows and their runs, webhooks";

    async fn new(runtime: &Runtime) -> Result<Self, String> {
        if runtime.options.get_flag(PRIVATE) && runtime.environment != Environment::Development {
            return Err(
                "ALLOW_PRIVATE_NETWORKS is for development only, as an account could reach what is not its \
                        own: unset it, or set ENVIRONMENT=development"
                    .to_owned(),
            );
        }
        Ok(Self { runtime: runtime.clone(), outside: outside(runtime) })
    }

    fn migrations() -> &'static Migrator {
        static MIGRATIONS: Migrator = sqlx::migrate!();
        &MIGRATIONS
    }

    fn options(command: Command) -> Command {
        let private = Arg::new(PRIVATE)
            .long(PRIVATE)
            .env("ALLOW_PRIVATE_NETWORKS")
            .action(ArgAction::SetTrue)
            .global(true)
            .help("Let flows and webhooks reach this machine and private networks; in development only");
        command.arg(private).subcommand(flow::cli::command())
    }

    fn routes(self: &Arc<Self>, routes: &mut RoutesBuilder) {
        let runtime = &self.runtime;
        let db = || runtime.db.clone();
        let deliverer = webhook::Deliverer {
            outside: self.outside.clone(),
            post: runtime.mailer.clone(),
            peers: runtime.peers.clone(),
            tokens: runtime.tokens.clone(),
        };
        let webhooks =
            webhook::Webhooks { db: db(), deliverer: Arc::new(deliverer), private: is_private(runtime) };
        routes
            .add_service(EventListenerServiceServer::new(event::Rpc { db: db() }))
            .add_service(EventServiceServer::new(event::Events { db: db() }))
            .add_service(FlowServiceServer::new(flow::Flows { db: db() }))
            .add_service(RunServiceServer::new(run::Runs { db: db() }))
            .add_service(TriggerServiceServer::new(trigger::Rpc { db: db() }))
            .add_service(WebhookServiceServer::new(webhooks));
    }

    fn workers(self: &Arc<Self>) -> Vec<Worker> {
        let (runtime, outside) = (&self.runtime, self.outside.clone());
        let mut workers = vec![
            run::executor::worker(runtime, outside.clone()),
            webhook::worker(runtime, outside),
            flow::schedule::worker(),
        ];
        workers.extend(purge::workers());
        workers
    }

    async fn command(runtime: &Runtime, name: &str, arguments: &ArgMatches) -> Result<(), String> {
        match name {
            flow::cli::NAME => flow::cli::run(runtime, arguments).await,
            other => Err(format!("there is no command {other}")),
        }
    }

    async fn provision(&self, tx: &mut Tx<'_>) -> Result<(), chassis_base::Error> {
        Ok(flow::ready::install(tx).await?)
    }
}

fn is_private(runtime: &Runtime) -> bool {
    runtime.options.get_flag(PRIVATE)
}

fn outside(runtime: &Runtime) -> Outside {
    Outside::new(is_private(runtime))
}
