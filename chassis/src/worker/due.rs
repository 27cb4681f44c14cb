//! Finding the accounts that have work, at a cost that follows their number and not the number of rows: from one
//! account to the next by the key that starts with `account_id`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::account::{self, Account, AccountId};
use crate::error::Error;

/// Whether the process' database is one that does not walk, because its rows are on several nodes.
static REFUSES_TO_WALK: AtomicBool = AtomicBool::new(false);
/// What it says then: feature not supported.
const UNSUPPORTED: &str = "0A000";

/// Where a worker's work is and when it is due. All texts are SQL of the program itself, never input.
#[derive(Clone, Debug)]
pub struct Due {
    /// The worker's own table; a key or index of it starts with `account_id`.
    pub table: &'static str,
    /// A condition on `work`, a row of the table, that an index serves: rows that may come due at all.
    pub live: &'static str,
    /// A condition on `work` for rows that are due. `$2` is the time, `$3` the argument.
    pub due: &'static str,
    /// A text for the conditions, when one table serves several workers.
    pub argument: String,
}

impl Due {
    fn sql(&self) -> String {
        let Self { table, live, due, .. } = self;
        format!(
            "with recursive walk as (
                (select account_id from {table} work where account_id > $1 and {live} order by account_id limit 1)
                union all
                select (select work.account_id from {table} work
                        where work.account_id > walk.account_id and {live} order by work.account_id limit 1)
                from walk where walk.account_id is not null
             )
             select account_id from walk
             where account_id is not null and $3::text is not null and exists (
                select from {table} work where work.account_id = walk.account_id and {live} and {due})
             limit $4"
        )
    }

    /// The same at the cost of looking at every row that is due: every node does it for its own.
    fn plain_sql(&self) -> String {
        let Self { table, live, due, .. } = self;
        format!(
            "select distinct account_id from {table} work
             where account_id > $1 and $3::text is not null and {live} and {due} order by account_id limit $4"
        )
    }

    /// The next accounts after `after` with work due at `now`, in the order of their ids.
    pub(super) async fn find(
        &self,
        connection: &mut PgConnection,
        after: Uuid,
        now: DateTime<Utc>,
        limit: i64,
    ) -> Result<Vec<AccountId>, Error> {
        if !REFUSES_TO_WALK.load(Ordering::Relaxed) {
            match self.ask(self.sql(), connection, after, now, limit).await {
                Err(error) if is_unsupported(&error) => REFUSES_TO_WALK.store(true, Ordering::Relaxed),
                answer => return Ok(answer?),
            }
        }
        Ok(self.ask(self.plain_sql(), connection, after, now, limit).await?)
    }

    async fn ask(
        &self,
        sql: String,
        connection: &mut PgConnection,
        after: Uuid,
        now: DateTime<Utc>,
        limit: i64,
    ) -> Result<Vec<AccountId>, sqlx::Error> {
        let query = sqlx::query_scalar(AssertSqlSafe(sql)).bind(after).bind(now);
        query.bind(&self.argument).bind(limit).fetch_all(connection).await
    }
}

fn is_unsupported(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
        .is_some_and(|code| code == UNSUPPORTED)
}

impl Due {
    /// How many rows are due at `now`, of all accounts; `most` when there are more.
    pub(super) async fn count(
        &self,
        connection: &mut PgConnection,
        now: DateTime<Utc>,
        most: i64,
    ) -> Result<i64, Error> {
        let Self { table, live, due, argument } = self;
        let sql = format!(
            "select count(*) from (select 1 from {table} work
             where {live} and {due} and $2::timestamptz is not null and $3::text is not null limit $1) due"
        );
        let count = sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(most)
            .bind(now)
            .bind(argument)
            .fetch_one(connection)
            .await?;
        Ok(count)
    }
}

/// The accounts with their settings; those that this service was not told of have the defaults.
pub(super) async fn with_settings(
    connection: &mut PgConnection,
    ids: &[AccountId],
) -> Result<Vec<Arc<Account>>, Error> {
    let mut known = account::find(connection, ids).await?;
    Ok(ids.iter().map(|id| Arc::new(known.remove(id).unwrap_or_else(|| Account::unknown(*id)))).collect())
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::*;
    use crate::testing::{self, TestDatabase};

    #[tokio::test]
    async fn both_ways_find_the_same_accounts() {
        static NONE: sqlx::migrate::Migrator = sqlx::migrate::Migrator::DEFAULT;
        let database = TestDatabase::new(&[("bare", &NONE)]).await;
        let mut connection = database.connect().await;
        let (now, soon) = (testing::moment(), testing::moment() + chrono::TimeDelta::seconds(1));
        // Of two each: one that has work, one whose work is done, one whose work comes later.
        for number in 0..12_u128 {
            let (status, next_at) =
                [("queued", now), ("sent", now), ("queued", soon)][usize::try_from(number % 3).unwrap()];
            sqlx::query(
                "insert into bare.mail (account_id, id, sender, recipients, reference, status, next_at, created_at)
                 values ($1, $2, '', '{}', '', $3, $4, $4)",
            )
            .bind(Uuid::from_u128(number / 6 * 3 + number % 3 + 1))
            .bind(Uuid::from_u128(number))
            .bind(status)
            .bind(next_at)
            .execute(&mut connection)
            .await
            .unwrap();
        }
        let due = Due {
            table: "bare.mail",
            live: "work.status = 'queued'",
            due: "work.next_at <= $2",
            argument: String::new(),
        };
        for (after, limit, expected) in
            [(0, 10, vec![1, 4]), (1, 10, vec![4]), (0, 1, vec![1]), (4, 10, vec![])]
        {
            for sql in [due.sql(), due.plain_sql()] {
                let found = due.ask(sql, &mut connection, Uuid::from_u128(after), now, limit).await.unwrap();
                let found: Vec<u128> = found.iter().map(|account| account.uuid().as_u128()).collect();
                assert_eq!(found, expected, "after {after}, at most {limit}");
            }
        }
    }
}
