//! Writes that need no transaction: one statement stores everything or nothing, and if that is refused, a transaction decides.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use chassis_base::error::status::problem_of;
use chassis_base::{Account, AccountId, Error};
use chassis_data::idempotency::WINDOW;
use chassis_data::{Db, LazyTx, Listing};
use chassis_rpc::Call;
use chassis_testing::{TestDatabase, bare};
use futures::future::join_all;
use proto::api::{MailKey, Problem, ProvisionAccountRequest, ProvisionAccountResponse};
use sqlx::PgConnection;
use uuid::Uuid;

const KIND: &str = "thing";

async fn database() -> TestDatabase {
    let database = bare::database().await;
    let table = "create table bare.thing (account_id uuid not null, id uuid primary key, name text not null unique, \
                 version bigint not null)";
    sqlx::raw_sql(table).execute(&mut database.connect().await).await.unwrap();
    database
}

fn keyed(db: &Db, account: &Account, key: &str, name: &str) -> Call<ProvisionAccountRequest> {
    let mut call = bare::call(account, db.clock());
    call.context.idempotency_key = Some(key.into());
    name.clone_into(&mut call.input.name);
    call
}

/// Whether an operation ran in a transaction, as the error that it then ends with says.
const IN_TRANSACTION: Problem = Problem::WrongStatus;

/// Creates a thing. Fails if it runs in a transaction and another has the name.
async fn create(
    tx: &mut LazyTx<'_>,
    input: &ProvisionAccountRequest,
) -> Result<ProvisionAccountResponse, Error> {
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    if let Some(connection) = tx.opened() {
        let sql = "select id from thing where name = $1";
        let holder: Option<Uuid> =
            sqlx::query_scalar(sql).bind(&input.name).fetch_optional(connection).await?;
        if let Some(holder) = holder {
            return Err(Error::problem(IN_TRANSACTION, "The name is taken.").with("id", holder.to_string()));
        }
    }
    let sql = "insert into thing (account_id, id, name, version) values ($1, $2, $3, 1)";
    tx.write_last(sqlx::query(sql).bind(account).bind(id).bind(&input.name))?;
    tx.list(&Listing::new(now, id).of(KIND));
    tx.changed(KIND, id, &MailKey { domain: input.name.clone(), ..MailKey::default() });
    Ok(ProvisionAccountResponse {})
}

/// How many things, changes of things and things in the total there are.
async fn counts(database: &TestDatabase, account: AccountId) -> (i64, i64, i64) {
    let sql = "select (select count(*) from bare.thing where account_id = $1),
                (select count(*) from bare.log where account_id = $1 and change is not null and kind = 'thing'),
                (select coalesce(sum(entries), 0)::bigint from bare.total
                 where account_id = $1 and list = 'thing' and bucket = '0001-01-01')";
    sqlx::query_as(sql).bind(account).fetch_one(&mut database.connect().await).await.unwrap()
}

#[tokio::test]
async fn everything_is_stored_once_however_often_a_call_is_repeated() {
    let (database, clock, account) = (database().await, chassis_testing::clock(), chassis_testing::account());
    let db = bare::open(&database, &clock);
    let twins = (0..20).map(|_| db.write_lazily(keyed(&db, &account, "k", "one"), create));
    for twin in join_all(twins).await {
        twin.unwrap();
    }
    assert_eq!(counts(&database, account.id).await, (1, 1, 1));

    let reused = db.write_lazily(keyed(&db, &account, "k", "two"), create).await.unwrap_err();
    assert_eq!(problem_of(&reused), Some(Problem::IdempotencyKeyReused));
    clock.advance(WINDOW);
    db.write_lazily(keyed(&db, &account, "k", "two"), create).await.unwrap();
    assert_eq!(counts(&database, account.id).await, (2, 2, 2), "after 24 hours the key is free again");
}

#[tokio::test]
async fn what_an_index_refuses_leaves_nothing_and_is_explained_by_a_transaction() {
    let (database, clock, account) = (database().await, chassis_testing::clock(), chassis_testing::account());
    let db = bare::open(&database, &clock);
    db.write_lazily(keyed(&db, &account, "first", "one"), create).await.unwrap();
    let refused = db.write_lazily(keyed(&db, &account, "second", "one"), create).await.unwrap_err();
    assert_eq!(problem_of(&refused), Some(IN_TRANSACTION));
    assert_eq!(counts(&database, account.id).await, (1, 1, 1));
    db.write_lazily(keyed(&db, &account, "second", "two"), create).await.unwrap();
    assert_eq!(counts(&database, account.id).await, (2, 2, 2), "the key is free");
}

/// Renames a thing that was read without a lock, unless the transaction is open.
async fn rename(tx: &mut LazyTx<'_>, id: &Uuid) -> Result<ProvisionAccountResponse, Error> {
    let find = async |connection: &mut PgConnection, lock: &str| {
        let sql = format!("select version from thing where id = $1 {lock}");
        let version = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(id).fetch_one(connection).await?;
        Ok::<i64, Error>(version)
    };
    let version = 1 + match tx.opened() {
        Some(connection) => find(connection, "for update").await?,
        None => tx.read(async |connection| find(connection, "").await).await?,
    };
    let sql =
        "update thing set name = $2, version = case when version = $3::bigint - 1 then $3 end where id = $1";
    tx.write_last(sqlx::query(sql).bind(id).bind(version.to_string()).bind(version))?;
    tx.changed(KIND, id, &MailKey { domain: version.to_string(), ..MailKey::default() });
    Ok(ProvisionAccountResponse {})
}

#[tokio::test]
async fn of_many_changes_at_once_none_is_lost() {
    let (database, clock, account) = (database().await, chassis_testing::clock(), chassis_testing::account());
    let db = bare::open(&database, &clock);
    db.write_lazily(keyed(&db, &account, "k", "one"), create).await.unwrap();
    let mut connection = database.connect().await;
    let id: Uuid = sqlx::query_scalar("select id from bare.thing").fetch_one(&mut connection).await.unwrap();
    let renamed = (0..30).map(|_| {
        let operation = async |tx: &mut LazyTx<'_>, _: &ProvisionAccountRequest| rename(tx, &id).await;
        db.write_lazily(bare::call(&account, &clock), operation)
    });
    for renamed in join_all(renamed).await {
        renamed.unwrap();
    }
    let sql = "select name, version from bare.thing";
    let thing: (String, i64) = sqlx::query_as(sql).fetch_one(&mut connection).await.unwrap();
    assert_eq!(thing, ("31".to_owned(), 31));
    assert_eq!(counts(&database, account.id).await, (1, 31, 1));
}

#[tokio::test]
async fn a_change_of_a_record_that_is_deleted_meanwhile_is_refused() {
    let (database, clock, account) = (database().await, chassis_testing::clock(), chassis_testing::account());
    let db = bare::open(&database, &clock);
    // Older than the log, which therefore has no version of it that could collide.
    let id = clock.id();
    let sql = "insert into bare.thing (account_id, id, name, version) values ($1, $2, 'old', 1)";
    let mut connection = database.connect().await;
    sqlx::query(sql).bind(account.id).bind(id).execute(&mut connection).await.unwrap();
    let (database, id) = (&database, &id);
    let operation = async |tx: &mut LazyTx<'_>, _: &ProvisionAccountRequest| {
        let is_first = tx.opened().is_none();
        let renamed = rename(tx, id).await;
        if is_first {
            sqlx::query("delete from bare.thing").execute(&mut database.connect().await).await?;
        }
        renamed
    };
    assert!(db.write_lazily(bare::call(&account, &clock), operation).await.is_err());
    assert_eq!(counts(database, account.id).await, (0, 0, 0), "nothing is logged");
}

#[tokio::test]
async fn a_change_without_an_entry_in_the_log_is_refused() {
    let (database, clock, account) = (database().await, chassis_testing::clock(), chassis_testing::account());
    let db = bare::open(&database, &clock);
    let silent = async |tx: &mut LazyTx<'_>, _: &ProvisionAccountRequest| {
        let sql = "insert into thing (account_id, id, name, version) values ($1, $2, 'silent', 1)";
        let (account, id) = (tx.account(), tx.id());
        tx.write_last(sqlx::query(sql).bind(account).bind(id))?;
        Ok::<_, Error>(ProvisionAccountResponse {})
    };
    assert!(db.write_lazily(bare::call(&account, &clock), silent).await.is_err());
    assert_eq!(counts(&database, account.id).await, (0, 0, 0));
}
