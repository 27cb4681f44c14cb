//! Clients, suppliers, the links between clients, and custom fields. Calls other services only to learn what refers to a
//! client that is to be removed.

mod custom_field;
mod error;
mod link;
mod records;
mod relation;
mod relation_type;

use std::sync::{Arc, LazyLock};

use chassis_data::Db;
use chassis_data::log::snapshot::SharedRecords;
use chassis_data::references::Referable;
use chassis_rpc::references::References;
use chassis_service::{Runtime, Service};
use proto::relations::client_service_server::ClientServiceServer;
use proto::relations::custom_field_service_server::CustomFieldServiceServer;
use proto::relations::supplier_service_server::SupplierServiceServer;
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;

pub struct Relations {
    db: Db,
    references: References,
}

#[tonic::async_trait]
impl Service for Relations {
    const NAME: &'static str = "relations";
    const ABOUT: &'static str = "Clients, suppliers, links and custom fields";

    async fn new(runtime: &Runtime) -> Result<Self, String> {
        Ok(Self { db: runtime.db.clone(), references: runtime.references() })
    }

    fn migrations() -> &'static Migrator {
        static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| chassis_derive::migrations!("migrations"));
        &MIGRATIONS
    }

    fn routes(self: &Arc<Self>, routes: &mut RoutesBuilder) {
        let db = || self.db.clone();
        let clients = relation::rpc::clients::Clients { db: db(), references: self.references.clone() };
        routes
            .add_service(ClientServiceServer::new(clients))
            .add_service(SupplierServiceServer::new(relation::rpc::suppliers::Suppliers { db: db() }))
            .add_service(CustomFieldServiceServer::new(custom_field::rpc::CustomFields { db: db() }));
    }

    fn records(self: &Arc<Self>) -> SharedRecords {
        let records = Arc::clone(self);
        SharedRecords::new(records)
    }

    fn referables() -> &'static [Referable] {
        const TABLE: &str = "relations.relation";
        &[
            Referable {
                kind: "client",
                table: TABLE,
                condition: "role = 'client' and anonymized_at is null",
            },
            Referable { kind: "supplier", table: TABLE, condition: "role = 'supplier'" },
        ]
    }
}

/// The `main` of the program. It is here and not there, so that what it shares with the service is compiled once.
pub fn main() -> std::process::ExitCode {
    chassis_service::process::main::<Relations>()
}
