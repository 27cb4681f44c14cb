//! Whether counters of filters are what they count.

#![expect(clippy::expect_used, reason = "a test that cannot read its database has to stop")]

use sqlx::AssertSqlSafe;

use crate::TestDatabase;

/// Compares the counters of all filters of a list with the rows of its table, in all accounts. `which` are the rows of the list.
/// The counters of a new database are complete from the beginning, whether they are used already or not.
///
/// # Panics
/// When a counter is wrong, or when nothing is counted.
pub async fn assert_filters_counted(database: &TestDatabase, list: &str, table: &str, which: &str) {
    assert_filters_counted_with(database, list, table, which, &[]).await;
}

/// The same for a list with filters that no column has: name and value of each, as `name/value`, and its condition.
///
/// # Panics
/// When a counter is wrong, or when nothing is counted.
pub async fn assert_filters_counted_with(
    database: &TestDatabase,
    list: &str,
    table: &str,
    which: &str,
    named: &[(&str, &str)],
) {
    let schema = table.split('.').next().unwrap_or_default();
    let named =
        named.iter().map(|(filter, condition)| format!("when list = '{list}/{filter}' then {condition}"));
    let named = named.collect::<Vec<_>>().join(" ");
    let sql = format!(
        "select list, entries, (
            select count(*) from {table} entry where entry.account_id = counted.account_id and {which}
                and case {named}
                    when true then to_jsonb(entry) ->> split_part(list, '/', 2) = split_part(list, '/', 3) end)
         from (
            select account_id, list, sum(entries)::bigint as entries from {schema}.total
            where bucket = '0001-01-01' and list like '{list}/%/%' group by account_id, list
         ) counted"
    );
    let mut connection = database.connect().await;
    let counters: Vec<(String, i64, i64)> =
        sqlx::query_as(AssertSqlSafe(sql)).fetch_all(&mut connection).await.expect("a readable database");
    assert!(counters.iter().any(|(_, entries, _)| *entries > 0), "nothing is counted: {counters:?}");
    let wrong: Vec<_> = counters.iter().filter(|(_, entries, rows)| entries != rows).collect();
    assert!(wrong.is_empty(), "counters and rows: {wrong:?}");
}
