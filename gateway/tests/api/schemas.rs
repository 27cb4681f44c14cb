//! The rules that let the schemas be distributed by account, read from the catalogue after all services have migrated,
//! and the script that distributes them.

use std::collections::BTreeSet;
use std::path::Path;

use sqlx::PgConnection;

use crate::support::database;

pub(crate) const SCHEMAS: [&str; 7] =
    ["gateway", "relations", "billing", "crm", "support", "work", "automation"];

/// Tables that are no account's rows, or have to be found without an account: small, and the same on every node.
const REFERENCE: &[(&str, &str)] = &[
    ("gateway.account", "the list of accounts itself; its names are unique over all of them"),
    ("gateway.api_key", "a request brings nothing but its key, and the key says which account it is for"),
    ("support.mail_route", "a mail brings nothing but its domain, which says whose it is"),
];

/// Tables that every schema has and that stay on the coordinator: they divide work among processes, not accounts.
const LOCAL: &[(&str, &str)] = &[
    ("_sqlx_migrations", "which migrations were applied"),
    ("lease", "who works on which partition of the accounts"),
    ("replica", "which processes want a share of that work"),
    ("wake_up", "what processes tell each other of new work"),
    ("known_account", "the accounts, listed on one node"),
];

fn is_reference(table: &str) -> bool {
    REFERENCE.iter().any(|(name, _)| *name == table)
}

fn is_local(table: &str) -> bool {
    LOCAL.iter().any(|(name, _)| table.split_once('.').is_some_and(|(_, own)| own == *name))
}

async fn texts(connection: &mut PgConnection, sql: &'static str) -> Vec<String> {
    sqlx::query_scalar(sql).bind(&SCHEMAS[..]).fetch_all(connection).await.unwrap()
}

/// As `schema.table`.
async fn tables(connection: &mut PgConnection) -> Vec<String> {
    let sql =
        "select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
               where n.nspname = any($1) and c.relkind in ('r', 'p', 'f') order by 1";
    texts(connection, sql).await
}

/// Those whose rows are an account's.
pub(crate) async fn distributed(connection: &mut PgConnection) -> Vec<String> {
    let all = tables(connection).await;
    all.into_iter().filter(|table| !is_reference(table) && !is_local(table)).collect()
}

#[tokio::test]
async fn every_table_belongs_to_an_account_or_is_named_as_an_exception() {
    let database = database().await;
    let mut connection = database.connect().await;
    let all = tables(&mut connection).await;
    assert!(all.len() > 50, "the catalogue was read: {all:?}");
    for (name, why) in REFERENCE {
        assert!(all.iter().any(|table| table == name), "{name} ({why}) does not exist any more");
    }
    for (name, why) in LOCAL {
        let there = all.iter().filter(|table| table.ends_with(&format!(".{name}"))).count();
        assert_eq!(there, SCHEMAS.len(), "{name} ({why}) is in every schema");
    }
    let owned =
        "select n.nspname || '.' || c.relname from pg_attribute a join pg_class c on c.oid = a.attrelid
                 join pg_namespace n on n.oid = c.relnamespace
                 where n.nspname = any($1) and c.relkind in ('r', 'p') and a.attname = 'account_id'
                   and a.atttypid = 'uuid'::regtype and a.attnotnull";
    let owned: BTreeSet<String> = texts(&mut connection, owned).await.into_iter().collect();
    let unowned: Vec<String> =
        distributed(&mut connection).await.into_iter().filter(|table| !owned.contains(table)).collect();
    assert!(unowned.is_empty(), "without `account_id uuid not null`: {unowned:?}");
}

#[tokio::test]
async fn every_key_and_every_index_begins_with_the_account() {
    let database = database().await;
    let mut connection = database.connect().await;
    let keyless =
        "select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
                   where n.nspname = any($1) and c.relkind in ('r', 'p')
                     and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)";
    assert!(texts(&mut connection, keyless).await.is_empty(), "a table without a primary key");
    // An expression has the number 0, so that an index on one is found too.
    let others = "select n.nspname || '.' || c.relname || ' ' || i.indexrelid::regclass::text
                  from pg_index i join pg_class c on c.oid = i.indrelid join pg_namespace n on n.oid = c.relnamespace
                  left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
                  where n.nspname = any($1) and c.relkind in ('r', 'p') and a.attname is distinct from 'account_id'
                  order by 1";
    let others = texts(&mut connection, others).await;
    let table = |entry: &String| entry.split(' ').next().unwrap().to_owned();
    let wrong: Vec<&String> =
        others.iter().filter(|entry| !is_reference(&table(entry)) && !is_local(&table(entry))).collect();
    assert!(wrong.is_empty(), "keys and indexes that do not begin with account_id: {wrong:?}");
    for (name, why) in REFERENCE {
        assert!(others.iter().any(|entry| table(entry) == *name), "{name} needs no exception ({why})");
    }
}

#[tokio::test]
async fn a_foreign_key_stays_in_its_account_and_in_its_schema() {
    let database = database().await;
    let mut connection = database.connect().await;
    let all = "select count(*)::text from pg_constraint k join pg_namespace n on n.oid = k.connamespace
               where k.contype = 'f' and n.nspname = any($1)";
    assert_ne!(texts(&mut connection, all).await, ["0"], "there are foreign keys to look at");
    let wrong = "select k.conrelid::regclass || ' ' || k.conname
                 from pg_constraint k
                 join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
                 join pg_class d on d.oid = k.confrelid
                 left join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
                 left join pg_attribute b on b.attrelid = k.confrelid and b.attnum = k.confkey[1]
                 where k.contype = 'f' and n.nspname = any($1)
                   and (c.relnamespace <> d.relnamespace
                     or a.attname <> 'account_id' or b.attname <> 'account_id') order by 1";
    let wrong = texts(&mut connection, wrong).await;
    assert!(wrong.is_empty(), "foreign keys that leave their account or schema: {wrong:?}");
}

#[tokio::test]
async fn the_database_makes_no_ids_times_or_decisions_of_its_own() {
    let database = database().await;
    let mut connection = database.connect().await;
    let parts = "select 'sequence, view or foreign table ' || n.nspname || '.' || c.relname
                 from pg_class c join pg_namespace n on n.oid = c.relnamespace
                 where n.nspname = any($1) and c.relkind in ('S', 'v', 'm', 'f')
                 union all
                 select 'trigger ' || t.tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid
                 join pg_namespace n on n.oid = c.relnamespace where n.nspname = any($1) and not t.tgisinternal
                 union all
                 select 'function ' || p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
                 where n.nspname = any($1)
                 union all
                 select 'default of ' || n.nspname || '.' || c.relname || '.' || a.attname
                 from pg_attrdef d join pg_class c on c.oid = d.adrelid join pg_namespace n on n.oid = c.relnamespace
                 join pg_attribute a on a.attrelid = c.oid and a.attnum = d.adnum
                 where n.nspname = any($1) and c.relname <> '_sqlx_migrations'
                   and pg_get_expr(d.adbin, d.adrelid) like '%(%'
                 union all
                 select 'identity of ' || c.relname || '.' || a.attname from pg_attribute a
                 join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
                 where n.nspname = any($1) and (a.attidentity <> '' or a.attgenerated <> '')
                 union all
                 select 'rule ' || r.rulename from pg_rewrite r join pg_class c on c.oid = r.ev_class
                 join pg_namespace n on n.oid = c.relnamespace where n.nspname = any($1)";
    let found = texts(&mut connection, parts).await;
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test]
async fn every_table_is_distributed_after_those_that_it_refers_to() {
    let database = database().await;
    let mut connection = database.connect().await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/distribute.sql");
    let script = std::fs::read_to_string(path).unwrap();
    let query = script.trim_end().strip_suffix("\\gexec").expect("the statements are run, not shown");
    let statements: Vec<String> =
        sqlx::query_scalar(sqlx::AssertSqlSafe(query.to_owned())).fetch_all(&mut connection).await.unwrap();
    let first_of_group = |table: &str| format!("{}.idempotency", table.split('.').next().unwrap());
    let position_of = |table: &str| {
        let reference = format!("select create_reference_table('{table}')");
        let first = first_of_group(table);
        let group = if table == first { "none" } else { &first };
        let distributed =
            format!("select create_distributed_table('{table}', 'account_id', colocate_with => '{group}')");
        let wanted = if is_reference(table) { reference } else { distributed };
        statements.iter().position(|statement| *statement == wanted)
    };
    let tables = tables(&mut connection).await;
    let moved: Vec<&String> = tables.iter().filter(|table| !is_local(table)).collect();
    for table in &moved {
        assert!(position_of(table).is_some(), "{table} is not in {statements:?}");
        let is_led = is_reference(table) || position_of(&first_of_group(table)) <= position_of(table);
        assert!(is_led, "{table} comes before the table that its group begins with");
    }
    assert_eq!(statements.len(), moved.len(), "nothing else is distributed");
    let references = "select (k.conrelid::regclass)::text || ' ' || (k.confrelid::regclass)::text
                      from pg_constraint k join pg_namespace n on n.oid = k.connamespace
                      where k.contype = 'f' and k.conrelid <> k.confrelid and n.nspname = any($1)";
    for reference in texts(&mut connection, references).await {
        let (from, to) = reference.split_once(' ').unwrap();
        assert!(position_of(from) > position_of(to), "{from} refers to {to}");
    }
}
