//! Automation: hears the events of every service and those that integrations fire. Knows no other service's tables.
//!
//! So far events are kept, each once; flows and their runs are added on top of them.

mod event;
mod trigger;

use chassis::{Runtime, Service};
use proto::api::event_listener_service_server::EventListenerServiceServer;
use proto::automation::trigger_service_server::TriggerServiceServer;
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;

/// The service.
pub struct Automation;

#[tonic::async_trait]
impl Service for Automation {
    const NAME: &'static str = "automation";
    const ABOUT: &'static str = "Events, triggers, flows and their runs";

    fn migrations() -> &'static Migrator {
        static MIGRATIONS: Migrator = sqlx::migrate!();
        &MIGRATIONS
    }

    fn routes(runtime: &Runtime, routes: &mut RoutesBuilder) {
        routes.add_service(EventListenerServiceServer::new(event::Rpc::new(runtime.db.clone())));
        routes.add_service(TriggerServiceServer::new(trigger::Rpc::new(runtime.db.clone())));
    }
}
