//! What the tables of all services hold.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use chassis_testing::TestDatabase;
use chrono::{DateTime, Utc};
use sqlx::AssertSqlSafe;

pub(crate) const SCHEMAS: [&str; 7] =
    ["gateway", "relations", "automation", "billing", "crm", "work", "support"];

/// The tables in which a row has one of these texts, also among the bytes of a message.
pub(crate) async fn holders(database: &TestDatabase, texts: &[String]) -> BTreeSet<String> {
    let mut connection = database.connect().await;
    let sql =
        "select nspname || '.' || relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
         where nspname = any($1) and relkind = 'r'";
    let tables: Vec<String> =
        sqlx::query_scalar(sql).bind(SCHEMAS.as_slice()).fetch_all(&mut connection).await.unwrap();
    assert!(tables.len() > 7 * SCHEMAS.len());
    // A row as text shows bytes in hexadecimal digits.
    let wanted: Vec<String> = texts.iter().flat_map(|text| [text.clone(), hex(text)]).collect();
    let mut holders = BTreeSet::new();
    for table in tables {
        let sql = format!(
            "select exists (select from {table} searched_row, unnest($1::text[]) wanted (part)
                where strpos(searched_row::text, part) > 0)"
        );
        let holds = sqlx::query_scalar(AssertSqlSafe(sql)).bind(&wanted).fetch_one(&mut connection).await;
        if holds.unwrap() {
            holders.insert(table);
        }
    }
    holders
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").unwrap();
        digits
    })
}

async fn count(database: &TestDatabase, sql: String, time: Option<DateTime<Utc>>) -> i64 {
    let query = sqlx::query_scalar(AssertSqlSafe(sql));
    let query = if let Some(time) = time { query.bind(time) } else { query };
    query.fetch_one(&mut database.connect().await).await.unwrap()
}

/// How many deletions the log of each service tells.
pub(super) async fn deletions(database: &TestDatabase) -> Vec<(&'static str, i64)> {
    let mut all = Vec::new();
    for schema in SCHEMAS {
        let sql = format!("select count(*) from {schema}.log where change = 'deleted'");
        all.push((schema, count(database, sql, None).await));
    }
    all
}

/// Fails unless the logs have what is as young as this, the latest state of each record, and no other state or data.
pub(super) async fn check_images(database: &TestDatabase, kept_from: DateTime<Utc>) {
    let (mut old, mut young) = (0, 0);
    for schema in SCHEMAS {
        let superseded = format!(
            "exists (select from {schema}.log later where later.account_id = entry.account_id
                and later.record_id = entry.record_id and later.kind = entry.kind
                and later.change is not null and later.version > entry.version)"
        );
        let count = async |condition: &str| {
            let sql = format!("select count(*) from {schema}.log entry where {condition}");
            count(database, sql, Some(kept_from)).await
        };
        let left = format!("at < $1 and (data is not null or image is not null and {superseded})");
        assert_eq!(count(&left).await, 0, "{schema} has what is old and superseded");
        let lost = format!("image is null and image_hash is not null and (at >= $1 or not {superseded})");
        assert_eq!(count(&lost).await, 0, "{schema} has lost what is young or the latest");
        let lost = "data is null and event is not null and at >= $1";
        assert_eq!(count(lost).await, 0, "{schema} has lost the data of young events");
        old += count("image is null and image_hash is not null and at < $1").await;
        young += count(&format!("image is not null and at >= $1 and {superseded}")).await;
    }
    assert!(old > 20 && young > 100, "{old} states are forgotten, {young} young ones are there");
}

/// How many events and deliveries of automation are older than this.
pub(super) async fn old_events(database: &TestDatabase, than: DateTime<Utc>) -> i64 {
    let sql = "select (select count(*) from automation.event where received_at < $1)
        + (select count(*) from automation.webhook_delivery where created_at < $1)";
    count(database, sql.to_owned(), Some(than)).await
}
