//! Migrations by programs of several releases, one after another and concurrently.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::borrow::Cow;

use chassis_data::migrations::migrate;
use chassis_testing::bare::database;
use chassis_testing::{TestDatabase, eventually};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{PgConnection, SqlSafeStr};

const TABLE: (i64, &str) = (1001, "create table bare.thing (account_id uuid primary key, name text)");
const COLUMN: (i64, &str) = (1002, "alter table bare.thing add column note text");
const INDEX: (i64, &str) = (
    1003,
    "-- no-transaction\ncreate unique index concurrently if not exists thing_name on bare.thing (account_id, name)",
);

/// The migrations of a release.
fn release(migrations: &[(i64, &'static str)]) -> Migrator {
    let known = migrations.iter().map(|(version, sql)| {
        let without = sql.starts_with("-- no-transaction");
        Migration::new(*version, Cow::Borrowed("test"), MigrationType::Simple, sql.into_sql_str(), without)
    });
    Migrator::with_migrations(known.collect())
}

async fn bring(database: &TestDatabase, release: &Migrator) -> Result<(), chassis_base::Error> {
    migrate(database.url(), "bare", release).await
}

async fn run(connection: &mut PgConnection, sql: &'static str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(sql).execute(connection).await.map(|_| ())
}

/// The indexes of the schema whose name begins with `beginning`, and whether they are valid.
async fn indexes(connection: &mut PgConnection, beginning: &str) -> Vec<(String, bool)> {
    sqlx::query_as(
        "select c.relname::text, i.indisvalid from pg_index i join pg_class c on c.oid = i.indexrelid
         where c.relnamespace = 'bare'::regnamespace and starts_with(c.relname, $1) order by 1",
    )
    .bind(beginning)
    .fetch_all(connection)
    .await
    .unwrap()
}

#[tokio::test]
async fn an_older_program_leaves_what_a_newer_one_has_added_and_the_newer_goes_on_from_there() {
    let database = database().await;
    let (older, newer) = (release(&[TABLE]), release(&[TABLE, COLUMN, INDEX]));
    bring(&database, &older).await.unwrap();
    bring(&database, &newer).await.unwrap();
    bring(&database, &older).await.unwrap();
    bring(&database, &newer).await.unwrap();
    let mut connection = database.connect().await;
    assert_eq!(indexes(&mut connection, "thing_name").await, [("thing_name".to_owned(), true)]);
    run(&mut connection, "select note from bare.thing").await.unwrap();
}

#[tokio::test]
async fn a_migration_that_was_changed_after_it_was_applied_is_refused() {
    let database = database().await;
    bring(&database, &release(&[TABLE])).await.unwrap();
    let changed = release(&[(TABLE.0, "create table bare.thing (account_id uuid)")]);
    let refused = chassis_base::error::chain(&bring(&database, &changed).await.unwrap_err());
    assert!(refused.contains("1001"), "{refused}");
}

#[tokio::test]
async fn an_index_whose_building_was_interrupted_is_built_anew() {
    let database = database().await;
    bring(&database, &release(&[TABLE])).await.unwrap();
    let mut connection = database.connect().await;
    // The state after an interrupted build, of which sqlx has no record.
    run(&mut connection, "create index thing_name on bare.thing (account_id, name)").await.unwrap();
    run(&mut connection, "create index thing_name_ccnew on bare.thing (account_id, name)").await.unwrap();
    run(
        &mut connection,
        "update pg_index set indisvalid = false where indexrelid in
         ('bare.thing_name'::regclass, 'bare.thing_name_ccnew'::regclass)",
    )
    .await
    .unwrap();
    bring(&database, &release(&[TABLE, INDEX])).await.unwrap();
    assert_eq!(indexes(&mut connection, "thing_name").await, [("thing_name".to_owned(), true)]);
}

#[tokio::test]
async fn an_index_that_could_not_be_built_is_there_after_the_cause_is_gone() {
    let database = database().await;
    let twice = (1002, "alter table bare.thing drop constraint thing_pkey");
    bring(&database, &release(&[TABLE, twice])).await.unwrap();
    let mut connection = database.connect().await;
    let doubled = "insert into bare.thing (account_id, name)
                   select '00000000-0000-0000-0000-000000000001', 'one' from generate_series(1, 2)";
    run(&mut connection, doubled).await.unwrap();
    let newer = release(&[TABLE, twice, INDEX]);
    bring(&database, &newer).await.unwrap_err();
    assert_eq!(indexes(&mut connection, "thing_name").await, [("thing_name".to_owned(), false)]);
    run(&mut connection, "delete from bare.thing where ctid = '(0,1)'").await.unwrap();
    bring(&database, &newer).await.unwrap();
    assert_eq!(indexes(&mut connection, "thing_name").await, [("thing_name".to_owned(), true)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_migrate_at_the_same_time_do_not_hold_up_the_building_of_an_index() {
    let database = database().await;
    let newer = release(&[TABLE, COLUMN, INDEX]);
    let all = futures::future::join_all((0..6).map(|_| bring(&database, &newer))).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_in_use_can_be_used_by_others_while_its_migration_waits() {
    let database = database().await;
    bring(&database, &release(&[TABLE])).await.unwrap();
    let (mut holder, mut reader) = (database.connect().await, database.connect().await);
    run(&mut holder, "begin; select from bare.thing").await.unwrap();
    let url = database.url().to_owned();
    let migrating =
        tokio::spawn(async move { migrate(&url, "bare", &release(&[TABLE, COLUMN])).await.unwrap() });
    let mut observer = database.connect().await;
    eventually("the migration waits for the table", async || {
        let waiting = "select count(*) from pg_stat_activity
                       where datname = current_database() and wait_event_type = 'Lock'";
        sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut observer).await.unwrap() == 1
    })
    .await;
    // The reader first queues behind the migration. It waits this long only if the test fails.
    run(&mut reader, "set lock_timeout = '3min'").await.unwrap();
    run(&mut reader, "select from bare.thing").await.unwrap();
    run(&mut holder, "commit").await.unwrap();
    migrating.await.unwrap();
    run(&mut reader, "select note from bare.thing").await.unwrap();
}
