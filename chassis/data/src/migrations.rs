//! Bringing a schema up to date, while programs of this release, the one before and the one after work with it.
//!
//! Migrations only add. So what a newer release has applied is left alone here, and after a rollback everything works as
//! before. An index on a table with rows in it is built concurrently, in a migration without a transaction
//! (`-- no-transaction`); a build that was interrupted leaves an index that nobody uses, which is built anew.

use std::collections::HashMap;
use std::time::Duration;

use chassis_base::Error;
use sqlx::migrate::{Migrate as _, MigrateError, Migration, Migrator};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::connect::connect;

/// What every service has.
pub static CHASSIS: Migrator = sqlx::migrate!("./migrations");

/// Where sqlx keeps what was applied.
const APPLIED: &str = "_sqlx_migrations";
/// How long a change of a table waits for those who use it. Whoever comes after it waits behind it, so not for long.
const LOCK_TIMEOUT: &str = "2s";
/// How often it is tried, because the table was in use each time, and the time between two attempts, in which the others
/// go on.
const MAX_ATTEMPTS: u32 = 30;
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How often a process that waits for its turn looks.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Creates the schema if it is missing and brings it up to date: first what every service has, then `own`.
pub async fn migrate(url: &str, schema: &'static str, own: &Migrator) -> Result<(), Error> {
    let mut connection = connect(url, schema).await?;
    create_schema(&mut connection, schema).await?;
    take_turn(&mut connection).await?;
    finish_indexes(&mut connection, schema).await?;
    let mut all: Vec<Migration> = CHASSIS.iter().chain(own.iter()).cloned().collect();
    all.sort();
    apply_all(&mut connection, schema, &all).await?;
    // Ends the turn, too.
    connection.close().await?;
    Ok(())
}

async fn create_schema(connection: &mut PgConnection, schema: &str) -> Result<(), Error> {
    // Asked first, because a role that owns just its schema may not even say `create schema if not exists`.
    let exists: bool = sqlx::query_scalar("select exists (select from pg_namespace where nspname = $1)")
        .bind(schema)
        .fetch_one(&mut *connection)
        .await?;
    if !exists {
        run(connection, format!("create schema if not exists {schema}")).await?;
    }
    Ok(())
}

/// One migrates at a time. Not by a statement that waits, as sqlx has it: the one whose turn it is would wait for that
/// statement in turn when it builds an index concurrently.
async fn take_turn(connection: &mut PgConnection) -> Result<(), Error> {
    let asking = "select pg_try_advisory_lock(hashtextextended('migrate', 0))";
    while !sqlx::query_scalar::<_, bool>(asking).fetch_one(&mut *connection).await? {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Builds the indexes anew whose building was interrupted. Readers ignore such an index, writers keep it up, and
/// `create index … if not exists` takes it for the one that is wanted.
async fn finish_indexes(connection: &mut PgConnection, schema: &str) -> Result<(), Error> {
    // What building anew leaves behind when it is interrupted itself has a name of its own, and is of no use.
    let broken: Vec<(String, bool)> = sqlx::query_as(
        "select format('%I.%I', n.nspname, c.relname), c.relname ~ '_cc(new|old)[0-9]*$'
         from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = $1 and c.relkind = 'i' and not i.indisvalid order by 1",
    )
    .bind(schema)
    .fetch_all(&mut *connection)
    .await?;
    for (index, left_behind) in broken {
        tracing::warn!(index, "the building of an index was interrupted; it is built anew");
        let doing = if left_behind { "drop index concurrently" } else { "reindex index concurrently" };
        run(connection, format!("{doing} {index}")).await?;
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
    // Without a transaction an index is built, which waits for others and lets none wait.
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
                "migration {} found its table in use {MAX_ATTEMPTS} times: see in pg_stat_activity whose transaction is so \
                 long, end it, and migrate again",
                migration.version
            )));
        }
        tracing::warn!(version = migration.version, attempt, "the table is in use; tried again in a moment");
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
