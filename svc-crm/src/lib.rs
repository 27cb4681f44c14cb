//! Deals, pipelines, phases and sources.

mod deal;
mod error;
mod event_listener;
mod kind;
mod ordering;
mod pipeline;
mod records;
mod setup;
mod source;

use std::sync::{Arc, LazyLock};

use chassis_data::log::snapshot::SharedRecords;
use chassis_data::references::{Referable, Referrer};
use chassis_data::{Db, Tx};
use chassis_rpc::references::References;
use chassis_service::{Runtime, Service};
use chassis_work::scan::Scan;
use proto::api::event_listener_service_server::EventListenerServiceServer;
use proto::crm::deal_service_server::DealServiceServer;
use proto::crm::deal_source_service_server::DealSourceServiceServer;
use proto::crm::pipeline_service_server::PipelineServiceServer;
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;

pub struct Crm {
    db: Db,
    references: References,
}

#[tonic::async_trait]
impl Service for Crm {
    const NAME: &'static str = "crm";
    const ABOUT: &'static str = "Deals, pipelines, phases and sources";

    async fn new(runtime: &Runtime) -> Result<Self, String> {
        Ok(Self { db: runtime.db.clone(), references: runtime.references() })
    }

    fn migrations() -> &'static Migrator {
        static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| chassis_derive::migrations!("migrations"));
        &MIGRATIONS
    }

    fn routes(self: &Arc<Self>, routes: &mut RoutesBuilder) {
        let db = || self.db.clone();
        let deals = deal::rpc::Deals { db: db(), references: self.references.clone() };
        routes
            .add_service(EventListenerServiceServer::new(event_listener::EventListener { db: db() }))
            .add_service(DealServiceServer::new(deals))
            .add_service(PipelineServiceServer::new(pipeline::rpc::Pipelines { db: db() }))
            .add_service(DealSourceServiceServer::new(source::rpc::Sources { db: db() }));
    }

    fn records(self: &Arc<Self>) -> SharedRecords {
        let records = Arc::clone(self);
        SharedRecords::new(records)
    }

    fn scans(self: &Arc<Self>) -> Vec<Scan> {
        deal::scans::all()
    }

    fn referables() -> &'static [Referable] {
        const TABLE: &str = "crm.deal";
        &[
            Referable { kind: "deal", table: TABLE, condition: "true" },
            Referable { kind: "open_deal", table: TABLE, condition: "status = 'open'" },
        ]
    }

    fn referrers() -> &'static [Referrer] {
        &[Referrer {
            kind: "deal",
            to: "client",
            table: "crm.deal",
            id: "id",
            column: "client_id",
            condition: "true",
            live: "false",
        }]
    }

    async fn provision(&self, tx: &mut Tx<'_>) -> Result<(), chassis_base::Error> {
        setup::operations::ensure_defaults(tx).await?;
        Ok(())
    }
}

/// The `main` of the program. It is here and not there, so that what it shares with the service is compiled once.
pub fn main() -> std::process::ExitCode {
    chassis_service::process::main::<Crm>()
}
