//! Checks of the database: that it can be reached, that its version, settings, extensions, privileges and migrations
//! are what the process needs, and that its clock agrees.

use std::time::Instant;

use chassis_base::error::chain;
use chassis_data::Db;
use chassis_data::migrations::CHASSIS;
use chassis_data::session_settings::SessionSettings;
use chrono::DateTime;
use proto::api::Finding;
use sqlx::PgConnection;
use sqlx::migrate::Migrator;

use super::clock::{Span, assess};
use super::finding::{LOOK_TIMEOUT, bad, doubtful, good};

/// The oldest PostgreSQL that is tested.
const OLDEST: i32 = 150_000;
const EXTENSIONS: [&str; 2] = ["btree_gin", "pg_trgm"];

/// Runs all checks. `program` is the command that an operator runs to migrate; `own` are its migrations.
pub async fn examine(db: &Db, program: &str, schema: &str, own: &Migrator) -> Vec<Finding> {
    let started = Instant::now();
    let connection = tokio::time::timeout(LOOK_TIMEOUT, db.acquire()).await;
    let problem = match connection {
        Ok(Ok(mut connection)) => {
            let program = Program { name: program, schema, migrations: own };
            let inspection = inspect(&mut connection, db, &program);
            match tokio::time::timeout(LOOK_TIMEOUT, inspection).await {
                Ok(Ok(findings)) => {
                    // Every statement was answered, so the pool need not check the connection before its next use.
                    connection.done();
                    return findings;
                }
                Ok(Err(error)) => format!("a query failed: {}", chain(&error)),
                Err(_) => format!("it takes longer than {} s to answer", LOOK_TIMEOUT.as_secs()),
            }
        }
        Ok(Err(error)) => format!("no connection: {}", chain(&error)),
        Err(_) => format!("no connection within {} s", started.elapsed().as_secs()),
    };
    let advice = "See that PostgreSQL runs, that DATABASE_URL has its address, role and password, and that it takes more \
                  connections (max_connections).";
    vec![bad("database", problem, advice)]
}

/// The program whose database is inspected.
struct Program<'a> {
    name: &'a str,
    schema: &'a str,
    migrations: &'a Migrator,
}

async fn inspect(
    connection: &mut PgConnection,
    db: &Db,
    program: &Program<'_>,
) -> Result<Vec<Finding>, sqlx::Error> {
    let Program { name, schema, migrations: own } = program;
    let facts = facts(connection).await?;
    let mut findings = vec![version(&facts), settings(&facts)];
    findings.push(session(&SessionSettings::read(connection).await?, schema, db.is_pooled()));
    findings.push(extensions(connection).await?);
    findings.push(role(connection, schema).await?);
    findings.push(migrations(connection, name, own).await);
    findings.push(clock(connection, db).await?);
    Ok(findings)
}

#[derive(chassis_derive::FromRow)]
struct Facts {
    version: String,
    number: i32,
    encoding: String,
    read_only: bool,
    durable: bool,
}

async fn facts(connection: &mut PgConnection) -> Result<Facts, sqlx::Error> {
    sqlx::query_as(
        "select current_setting('server_version') as version,
                current_setting('server_version_num')::integer as number,
                current_setting('server_encoding') as encoding,
                pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean as read_only,
                current_setting('fsync')::boolean and current_setting('synchronous_commit') <> 'off' as durable",
    )
    .fetch_one(connection)
    .await
}

fn version(facts: &Facts) -> Finding {
    let saw = format!("PostgreSQL {}", facts.version);
    if facts.number >= OLDEST {
        good("database", saw)
    } else {
        bad("database", saw, "Upgrade PostgreSQL to version 15 or later.")
    }
}

fn settings(facts: &Facts) -> Finding {
    const NAME: &str = "settings";
    if facts.read_only {
        let advice = "This is a standby, or the role may only read: let DATABASE_URL name the primary.";
        return bad(NAME, "nothing can be written here", advice);
    }
    if facts.encoding != "UTF8" {
        let advice = "Recreate the database with encoding UTF8: dump, createdb -E UTF8, restore.";
        return bad(NAME, format!("the encoding is {}", facts.encoding), advice);
    }
    if !facts.durable {
        let advice = "Set fsync and synchronous_commit to on: what was acknowledged can be lost in a crash.";
        return doubtful(NAME, "commits do not wait for the disk", advice);
    }
    good(NAME, "UTF8, durable")
}

/// Checks the session settings as the server reports them, because a pooler in between may change them.
fn session(given: &SessionSettings, schema: &str, pooler: bool) -> Finding {
    const NAME: &str = "sessions";
    if let Some(missing) = given.missing(schema, pooler) {
        return bad(NAME, missing.saw, missing.advice);
    }
    if pooler && !given.keeps_statements_apart() {
        let advice = "If it is PgBouncer, it has to be 1.21 or later with max_prepared_statements = 256 or more. If there \
                      is no pooler, set DATABASE_POOLER=false.";
        return doubtful(NAME, "the pooler does not support prepared statements, or there is none", advice);
    }
    let through = if pooler { ", through a pooler" } else { "" };
    good(NAME, format!("in {schema}, statements end after {}{through}", given.statement_timeout()))
}

async fn extensions(connection: &mut PgConnection) -> Result<Finding, sqlx::Error> {
    let found: Vec<String> = sqlx::query_scalar("select extname::text from pg_extension order by extname")
        .fetch_all(connection)
        .await?;
    let missing: Vec<&str> =
        EXTENSIONS.into_iter().filter(|name| !found.iter().any(|have| have == name)).collect();
    Ok(if missing.is_empty() {
        good("extensions", EXTENSIONS.join(", "))
    } else {
        let advice =
            "As an administrator of the database: create extension … schema public, for each of them.";
        bad("extensions", format!("missing: {}", missing.join(", ")), advice)
    })
}

#[derive(chassis_derive::FromRow)]
struct Role {
    name: String,
    superuser: bool,
    usable: bool,
    /// Tables of its schema that the role may not read and write.
    closed: Vec<String>,
    /// Schemas of other services that the role may use.
    foreign: Vec<String>,
}

async fn role(connection: &mut PgConnection, schema: &str) -> Result<Finding, sqlx::Error> {
    const NAME: &str = "role";
    let role: Role = sqlx::query_as(
        "select rolname::text as name, rolsuper as superuser,
                exists (select from pg_namespace where nspname = $1 and has_schema_privilege(oid, 'usage')) as usable,
                array(select c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
                      where n.nspname = $1 and c.relkind in ('r', 'p') and c.relname <> '_sqlx_migrations'
                        and not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
                             and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))
                      order by c.relname) as closed,
                array(select nspname::text from pg_namespace
                      where nspname <> $1 and nspname not in ('public', 'information_schema')
                        and nspname not like 'pg\\_%' and has_schema_privilege(oid, 'usage')
                      order by nspname) as foreign
         from pg_roles where rolname = current_user",
    )
    .bind(schema)
    .fetch_one(connection)
    .await?;
    Ok(if !role.usable {
        let advice = "Migrate first; then let the role use the schema (deploy/k8s/roles.sql does).";
        bad(NAME, format!("{} cannot use the schema {schema}", role.name), advice)
    } else if !role.closed.is_empty() {
        let advice = "Grant select, insert, update and delete on them (deploy/k8s/roles.sql does).";
        bad(NAME, format!("{} has no rights on {}", role.name, role.closed.join(", ")), advice)
    } else if role.superuser {
        let advice =
            "Let the program log in with a role that has its own schema only (deploy/k8s/roles.sql).";
        doubtful(NAME, format!("{} is a superuser", role.name), advice)
    } else if !role.foreign.is_empty() {
        let advice = "Revoke usage on the schemas of other services (deploy/k8s/roles.sql).";
        doubtful(NAME, format!("{} also sees {}", role.name, role.foreign.join(", ")), advice)
    } else {
        good(NAME, format!("{}, with its own schema only", role.name))
    })
}

#[derive(chassis_derive::FromRow)]
struct Applied {
    version: i64,
    success: bool,
    checksum: Vec<u8>,
}

async fn migrations(connection: &mut PgConnection, program: &str, own: &Migrator) -> Finding {
    let applied: Result<Vec<Applied>, _> =
        sqlx::query_as("select version, success, checksum from _sqlx_migrations order by version")
            .fetch_all(connection)
            .await;
    match applied {
        Ok(applied) => compare(program, &applied, own),
        Err(error) => {
            let advice = format!("Run `{program} migrate`, with a role that owns the schema.");
            bad("migrations", format!("none: {}", chain(&error)), &advice)
        }
    }
}

/// Compares the applied migrations with those of the program.
fn compare(program: &str, applied: &[Applied], own: &Migrator) -> Finding {
    const NAME: &str = "migrations";
    let known: Vec<_> = CHASSIS.iter().chain(own.iter()).collect();
    let of = |version: i64| applied.iter().find(|row| row.version == version);
    let missing: Vec<String> = known
        .iter()
        .filter(|known| !of(known.version).is_some_and(|row| row.success))
        .map(|known| format!("{} {}", known.version, known.description))
        .collect();
    let changed: Vec<String> = known
        .iter()
        .filter(|known| of(known.version).is_some_and(|row| row.checksum[..] != known.checksum[..]))
        .map(|known| known.version.to_string())
        .collect();
    let newer: Vec<String> = applied
        .iter()
        .filter(|row| known.iter().all(|known| known.version != row.version))
        .map(|row| row.version.to_string())
        .collect();
    if !missing.is_empty() {
        let advice = format!("Run `{program} migrate`, then examine again.");
        bad(NAME, format!("not applied: {}", missing.join(", ")), &advice)
    } else if !changed.is_empty() {
        let advice = "The database was migrated by another build. Run the release that it was migrated with.";
        bad(NAME, format!("applied with another content: {}", changed.join(", ")), advice)
    } else if newer.is_empty() {
        good(NAME, format!("all {} applied", known.len()))
    } else {
        // This is the state after a rollback, which is safe because migrations only add.
        good(NAME, format!("all {} applied, and those of a newer release: {}", known.len(), newer.join(", ")))
    }
}

async fn clock(connection: &mut PgConnection, db: &Db) -> Result<Finding, sqlx::Error> {
    let span = Span::begin(db.clock());
    let read: i64 = sqlx::query_scalar("select (extract(epoch from clock_timestamp()) * 1000)::bigint")
        .fetch_one(connection)
        .await?;
    let read = DateTime::from_timestamp_millis(read).unwrap_or_default();
    Ok(assess("the database", span.end(db.clock(), read)))
}
