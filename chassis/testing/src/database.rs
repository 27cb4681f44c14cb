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

/// The database of one test; dropped with the value.
pub struct TestDatabase {
    url: String,
    name: String,
    /// The worker nodes that hold a part of the database, when the server is the coordinator of a cluster.
    workers: Vec<PgConnectOptions>,
}

impl TestDatabase {
    /// Creates a database with these schemas, each with the migrations of the chassis and its own applied.
    pub async fn new(schemas: &[(&'static str, &'static Migrator)]) -> Self {
        let workers = citus::workers().await;
        let template = ensure_template(schemas, &workers).await;
        let name = format!("test_{}", Uuid::new_v4().simple());
        // In memory, where the cluster of the tests is, copying the files takes half as long as the default, which logs
        // every page of them.
        let create = format!("create database {name} template {template} strategy file_copy");
        citus::on_all(&workers, &create).await;
        execute(&mut connect_to_server().await, create).await;
        Self { url: url_of(&name), name, workers }
    }

    /// The address, for direct queries and for [`service_database`](super::service_database).
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A superuser's connection, to check what a test has written.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("the test's own database")
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (name, workers) = (self.name.clone(), std::mem::take(&mut self.workers));
        // `drop` cannot await inside the test's runtime, so another thread does the work.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let mut server = connect_to_server().await;
                // DROP DATABASE waits until every session acknowledges it. A session of the runtime that `join` blocks
                // may be in the middle of its login and cannot acknowledge, so the statement needs a timeout.
                execute(&mut server, "set statement_timeout = '5s'".to_owned()).await;
                let drop = format!("drop database if exists {name} with (force)");
                execute(&mut server, drop.clone()).await;
                citus::on_all(&workers, &drop).await;
            });
        });
        // A database that is left behind does no harm, because the server is deleted after the tests.
        let _ = dropping.join();
    }
}

async fn ensure_template(
    schemas: &[(&'static str, &'static Migrator)],
    workers: &[PgConnectOptions],
) -> String {
    let name = template_name(schemas);
    let mut server = connect_to_server().await;
    // One test process creates the template; the other processes wait for this lock. A crash releases the lock, and
    // leaves a database without the template flag, which the next process drops.
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
    server.close().await.expect("closing releases the lock");
    name
}

/// The name depends on the migrations, so that another set of migrations gets another template.
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
