//! A service with only the parts that every service has, and helpers to write to it.

#![expect(clippy::unwrap_used, reason = "a test that cannot write has to stop")]

use std::ops::AsyncFn;
use std::sync::Arc;

use chassis_base::{Account, Clock, Error};
use chassis_data::{Db, Event, Tx};
use chassis_rpc::{Call, Context};
use chassis_service::{Runtime, Service};
use proto::api::{ProvisionAccountRequest, ProvisionAccountResponse};
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;
use uuid::Uuid;

use super::database::TestDatabase;

pub static NO_MIGRATIONS: Migrator = Migrator::DEFAULT;

pub struct Bare;

#[tonic::async_trait]
impl Service for Bare {
    const NAME: &'static str = "bare";
    const ABOUT: &'static str = "For tests";

    fn migrations() -> &'static Migrator {
        &NO_MIGRATIONS
    }

    async fn new(_: &Runtime) -> Result<Self, String> {
        Ok(Self)
    }

    fn routes(self: &Arc<Self>, _: &mut RoutesBuilder) {}
}

pub async fn database() -> TestDatabase {
    TestDatabase::new(&[("bare", &NO_MIGRATIONS)]).await
}

/// Opens the database as another replica does.
pub fn open(database: &TestDatabase, clock: &Clock) -> Db {
    Db::open(database.url(), "bare", 4, clock.clone(), Vec::new()).unwrap()
}

/// A write on behalf of a caller.
pub async fn write(db: &Db, account: &Account, operation: impl AsyncFn(&mut Tx<'_>) -> Result<(), Error>) {
    let call = call(account, db.clock());
    let operation = async |tx: &mut Tx<'_>, _: &ProvisionAccountRequest| {
        operation(tx).await?;
        Ok::<_, Error>(ProvisionAccountResponse {})
    };
    db.write(call, operation).await.unwrap();
}

/// A call that writes.
pub fn call(account: &Account, clock: &Clock) -> Call<ProvisionAccountRequest> {
    Call {
        context: context(account, clock),
        input: ProvisionAccountRequest { name: "Bakery".into() },
        faults: proto::Faults::default(),
    }
}

/// Emits an event; `number` is the entity's version.
pub async fn emit(db: &Db, account: &Account, entity_id: Uuid, number: i64, data: &str) {
    write(db, account, async |tx| {
        let data = data.to_owned();
        tx.emit(&Event { kind: "thing.changed", entity_type: "thing", entity_id, version: number, data });
        Ok(())
    })
    .await;
}

/// The context of a mesh call for the account.
pub fn context(account: &Account, clock: &Clock) -> Context {
    Context::internal(account, "test", "test", clock)
}
