//! A private database for each test, cloned from a template that is migrated once.

#![expect(clippy::expect_used, reason = "a test that cannot get its database has to stop")]

use chassis_data::migrations::{CHASSIS, migrate};
use sha2::{Digest, Sha256};
use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::admin::{connect_to_server, execute, url_of};
use super::{citus, pooler};

/// A database of one test; dropped with the value.
pub struct TestDatabase {
    url: String,
    name: String,
    /// The other nodes that have a part of it, when the server is the coordinator of a cluster.
    workers: Vec<PgConnectOptions>,
}

impl TestDatabase {
    /// A database with these schemas, each brought up to date by the chassis' migrations and its own.
    pub async fn new(schemas: &[(&'static str, &'static Migrator)]) -> Self {
        let workers = citus::workers().await;
        let template = ensure_template(schemas, &workers).await;
        let name = format!("test_{}", Uuid::new_v4().simple());
        let create = format!("create database {name} template {template}");
        citus::on_all(&workers, &create).await;
        execute(&mut connect_to_server().await, create).await;
        Self { url: url_of(&name), name, workers }
    }

    /// For looking at it, and for [`service_database`](super::service_database).
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A connection that sees everything, for looking at what a test has done.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("the test's own database")
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (name, workers) = (self.name.clone(), std::mem::take(&mut self.workers));
        // Dropping cannot wait inside the test's own runtime.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let mut server = connect_to_server().await;
                // A database goes when every session of the server has heard of it, and one of the runtime that waits
                // below may be in the middle of its log-in: it hears when this gives up.
                execute(&mut server, "set statement_timeout = '5s'".to_owned()).await;
                let drop = format!("drop database if exists {name} with (force)");
                execute(&mut server, drop.clone()).await;
                citus::on_all(&workers, &drop).await;
            });
        });
        // A database that stays behind harms nobody: the server is thrown away.
        let _ = dropping.join();
    }
}

async fn ensure_template(
    schemas: &[(&'static str, &'static Migrator)],
    workers: &[PgConnectOptions],
) -> String {
    let name = template_name(schemas);
    let mut server = connect_to_server().await;
    // One process makes the template, the others wait for it.
    execute(&mut server, "select pg_advisory_lock(7237001)".to_owned()).await;
    pooler::ensure_roles(&mut server, schemas.iter().map(|(schema, _)| *schema)).await;
    let ready: bool =
        sqlx::query_scalar("select exists (select from pg_database where datname = $1 and datistemplate)")
            .bind(&name)
            .fetch_one(&mut server)
            .await
            .expect("the list of databases");
    if !ready {
        for sql in [format!("drop database if exists {name} with (force)"), format!("create database {name}")]
        {
            citus::on_all(workers, &sql).await;
            execute(&mut server, sql).await;
        }
        if !workers.is_empty() {
            citus::join(&name, workers).await;
        }
        let mut database = PgConnection::connect(&url_of(&name)).await.expect("the new template");
        for extension in ["pg_trgm", "btree_gin"] {
            execute(&mut database, format!("create extension {extension}")).await;
        }
        database.close().await.expect("closing the template");
        for (schema, migrator) in schemas {
            migrate(&url_of(&name), schema, migrator).await.expect("the migrations of the template");
        }
        if !workers.is_empty() {
            citus::distribute(&name).await;
            citus::leave(&name, workers).await;
        }
        execute(&mut server, format!("alter database {name} is_template true")).await;
    }
    server.close().await.expect("closing gives the lock back");
    name
}

/// Another set of migrations is another template.
fn template_name(schemas: &[(&'static str, &'static Migrator)]) -> String {
    let mut hash = Sha256::new();
    for migration in CHASSIS.iter() {
        hash.update(&migration.checksum);
    }
    for (schema, migrator) in schemas {
        hash.update(schema.as_bytes());
        for migration in migrator.iter() {
            hash.update(&migration.checksum);
        }
    }
    let digest: [u8; 32] = hash.finalize().into();
    format!("template_{}", Uuid::from_slice(&digest[..16]).expect("16 bytes").simple())
}
