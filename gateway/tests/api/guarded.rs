//! Every statement names its account. Here the database watches that: row-level security, for a role of this test only,
//! ends a statement as soon as it looks at a row of another account. In production it would cost half of the reads.

use chassis_base::Account;
use chassis_testing::TestDatabase;
use gateway::testing::Api;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::coverage::{JSON, all_operations, body_for, path_of, things_of};
use crate::schemas::{SCHEMAS, distributed};
use crate::support::Mesh;

/// A role is known to the whole server: another test may be making it.
const GUARD: &str = "
    do $$ begin create role guarded; exception when duplicate_object or unique_violation then null; end $$;
    create function public.guard(account uuid) returns boolean language plpgsql stable as $$
    begin
        if account = current_setting('guard.account')::uuid then return true; end if;
        raise exception 'a row of another account';
    end $$;";

async fn execute(connection: &mut PgConnection, sql: String) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.map(drop)
}

/// From now on every connection can see rows of this account, and fails at any other.
async fn guard(database: &TestDatabase, account: &Account) {
    let mut connection = database.connect().await;
    let name: String =
        sqlx::query_scalar("select current_database()").fetch_one(&mut connection).await.unwrap();
    execute(&mut connection, GUARD.to_owned()).await.unwrap();
    for table in distributed(&mut connection).await {
        let sql = format!(
            "alter table {table} enable row level security;
             create policy own on {table} using (guard(account_id)) with check (guard(account_id))"
        );
        execute(&mut connection, sql).await.unwrap();
    }
    for schema in SCHEMAS {
        let sql = format!(
            "grant usage on schema {schema} to guarded; grant all on all tables in schema {schema} to guarded"
        );
        execute(&mut connection, sql).await.unwrap();
    }
    let sql = format!(
        "alter database {name} set guard.account = '{}'; alter database {name} set role = 'guarded'",
        account.id
    );
    execute(&mut connection, sql).await.unwrap();
}

/// What the database says to a statement that forgot its account.
async fn fault_of(database: &TestDatabase, sql: &str) -> String {
    let outcome = execute(&mut database.connect().await, sql.to_owned()).await;
    outcome.err().map(|fault| fault.to_string()).unwrap_or_default()
}

/// Every operation that needs a key, on things of the caller's own or on those given. The share that succeeded.
pub(crate) async fn walk(
    mesh: &Mesh,
    api: &Api,
    account: &Account,
    theirs: Option<&[(&'static str, String)]>,
) -> f64 {
    let (mut asked, mut succeeded) = (0.0, 0.0);
    for operation in all_operations().into_iter().filter(|operation| !operation.is_public()) {
        let things = match theirs {
            Some(things) => things.to_vec(),
            // New ones for each: another operation may have ended them.
            None => things_of(mesh, api, account, &operation.path).await,
        };
        let known = things.iter().find(|(prefix, _)| operation.path.starts_with(prefix));
        let mut path = path_of(&operation, known.map_or("", |(_, id)| id));
        if operation.method == http::Method::GET {
            path += "?search=owner&per_page=1&page=2";
        }
        let body = body_for(&operation, &things).to_string();
        let answer = api.send(operation.method.clone(), &path, JSON, body).await;
        let text = String::from_utf8_lossy(&answer.body);
        assert!(!answer.status.is_server_error(), "{} {path}: {text}", operation.method);
        asked += 1.0;
        succeeded += f64::from(u8::from(answer.status.is_success()));
    }
    succeeded / asked
}

#[tokio::test]
async fn no_operation_looks_at_a_row_of_another_account() {
    let before = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let all: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let (owner, others) = before.api_of_new_account(&all).await;
    let theirs = things_of(&before, &owner, &others, "*").await;
    let (_, account) = before.api_of_new_account(&all).await;
    guard(&before.database, &account).await;

    let clock = before.clock.clone();
    let mesh = Mesh::around(before.database, clock, &["--rate-per-minute", "0"]).await;
    let own = format!("select count(*) from relations.relation where account_id = '{}'", account.id);
    assert_eq!(fault_of(&mesh.database, &own).await, "");
    let forgotten = fault_of(&mesh.database, "select count(*) from relations.relation").await;
    assert!(forgotten.contains("a row of another account"), "{forgotten}");

    let api = mesh.gateway.api(&account, &all).await;
    assert!(walk(&mesh, &api, &account, None).await > 0.9, "what is refused early looks at nothing");
    walk(&mesh, &api, &account, Some(&theirs)).await;
}
