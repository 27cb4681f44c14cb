//! Brings a schema up to date while programs of this release, the previous one and the next one use it.
//!
//! Migrations only add. So migrations of a newer release are left in place, and after a rollback everything works as
//! before. An index on a table with rows in it is built concurrently, in a migration without a transaction
//! (`-- no-transaction`); an interrupted build leaves an invalid index, which is rebuilt.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use chassis_base::Error;
use futures::future::BoxFuture;
use sqlx::migrate::{Migrate as _, MigrateError, Migration, Migrator};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::connect::connect;

/// The migrations of the tables that every service has.
pub static CHASSIS: LazyLock<Migrator> = LazyLock::new(|| chassis_derive::migrations!("migrations"));

/// The table in which sqlx records applied migrations.
const APPLIED: &str = "_sqlx_migrations";
/// How long a migration waits for the lock on a table. It is short, because later statements on the table queue behind
/// this lock request.
const LOCK_TIMEOUT: &str = "2s";
/// How often a migration is attempted while its table is in use.
const MAX_ATTEMPTS: u32 = 30;
/// The time between two attempts, in which the statements that queued behind the lock request run.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How often a waiting process tries to take the migration lock.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Creates the schema if it is missing and applies the migrations of every service and `own`, in order of version.
pub fn migrate<'a>(
    url: &'a str,
    schema: &'static str,
    own: &'a Migrator,
) -> BoxFuture<'a, Result<(), Error>> {
    Box::pin(migrate_in_turn(url, schema, own))
}

async fn migrate_in_turn(url: &str, schema: &'static str, own: &Migrator) -> Result<(), Error> {
    let mut connection = connect(url, schema).await?;
    create_schema(&mut connection, schema).await?;
    take_turn(&mut connection).await?;
    finish_indexes(&mut connection, schema).await?;
    let mut all: Vec<Migration> = CHASSIS.iter().chain(own.iter()).cloned().collect();
    all.sort();
    apply_all(&mut connection, schema, &all).await?;
    // The end of the session releases the advisory lock.
    connection.close().await?;
    Ok(())
}

async fn create_schema(connection: &mut PgConnection, schema: &str) -> Result<(), Error> {
    // A role that owns only its schema may not run `create schema if not exists`, even when the schema exists.
    let exists: bool = sqlx::query_scalar("select exists (select from pg_namespace where nspname = $1)")
        .bind(schema)
        .fetch_one(&mut *connection)
        .await?;
    if !exists {
        run(connection, format!("create schema if not exists {schema}")).await?;
    }
    Ok(())
}

/// Takes the advisory lock that lets one process migrate at a time. It polls and does not wait in a statement, as sqlx
/// does: a concurrent index build in the process that holds the lock would wait for that statement to end.
async fn take_turn(connection: &mut PgConnection) -> Result<(), Error> {
    let try_lock = "select pg_try_advisory_lock(hashtextextended('migrate', 0))";
    while !sqlx::query_scalar::<_, bool>(try_lock).fetch_one(&mut *connection).await? {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Rebuilds indexes whose build was interrupted. Queries ignore such an index, writers still maintain it, and
/// `create index … if not exists` skips the build because the name exists.
async fn finish_indexes(connection: &mut PgConnection, schema: &str) -> Result<(), Error> {
    // An interrupted `reindex concurrently` leaves an index with the suffix _ccnew or _ccold, which can be dropped.
    let broken: Vec<(String, bool)> = sqlx::query_as(
        "select format('%I.%I', n.nspname, c.relname), c.relname ~ '_cc(new|old)[0-9]*$'
         from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = $1 and c.relkind = 'i' and not i.indisvalid order by 1",
    )
    .bind(schema)
    .fetch_all(&mut *connection)
    .await?;
    for (index, is_leftover) in broken {
        tracing::warn!(index, "an index build was interrupted; repairing the index");
        let command = if is_leftover { "drop index concurrently" } else { "reindex index concurrently" };
        run(connection, format!("{command} {index}")).await?;
    }
    Ok(())
}

async fn apply_all(connection: &mut PgConnection, schema: &str, all: &[Migration]) -> Result<(), Error> {
    let failed = |error: MigrateError| Error::from(sqlx::Error::from(error));
    connection.ensure_migrations_table(APPLIED).await.map_err(failed)?;
    if let Some(version) = connection.dirty_version(APPLIED).await.map_err(failed)? {
        return Err(failed(MigrateError::Dirty(version)));
    }
    let applied = connection.list_applied_migrations(APPLIED).await.map_err(failed)?;
    let applied: HashMap<_, _> = applied.into_iter().map(|row| (row.version, row.checksum)).collect();
    for migration in all {
        match applied.get(&migration.version) {
            None => apply(connection, migration).await?,
            Some(checksum) if *checksum == migration.checksum => {}
            Some(_) => return Err(failed(MigrateError::VersionMismatch(migration.version))),
        }
    }
    let mut newer: Vec<_> =
        applied.keys().filter(|version| all.iter().all(|m| m.version != **version)).collect();
    newer.sort();
    if !newer.is_empty() {
        tracing::info!(schema, ?newer, "a newer release has migrated this schema; what it added stays");
    }
    Ok(())
}

async fn apply(connection: &mut PgConnection, migration: &Migration) -> Result<(), Error> {
    // A migration without a transaction builds an index concurrently: it waits for others and blocks nobody.
    let lock_timeout = if migration.no_tx { "0" } else { LOCK_TIMEOUT };
    run(connection, format!("set lock_timeout = '{lock_timeout}'")).await?;
    let mut attempt = 1;
    loop {
        let error = match connection.apply(APPLIED, migration).await {
            Ok(_) => break,
            Err(error) => Error::from(sqlx::Error::from(error)),
        };
        if !is_lock_timeout(&error) {
            return Err(error);
        }
        if attempt == MAX_ATTEMPTS {
            return Err(Error::Internal(format!(
                "migration {} found its table in use {MAX_ATTEMPTS} times: find the long transaction in pg_stat_activity, \
                 end it, and migrate again",
                migration.version
            )));
        }
        tracing::warn!(version = migration.version, attempt, "migration deferred: its table is in use");
        attempt += 1;
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
    run(connection, "set lock_timeout = 0".to_owned()).await
}

fn is_lock_timeout(error: &Error) -> bool {
    let Error::Database(sqlx::Error::Migrate(error)) = error else { return false };
    let MigrateError::ExecuteMigration(error, _) = &**error else { return false };
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref() == Some("55P03")
}

async fn run(connection: &mut PgConnection, sql: String) -> Result<(), Error> {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await?;
    Ok(())
}
