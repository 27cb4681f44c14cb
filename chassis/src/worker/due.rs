//! Finding the accounts that have work, at a cost that follows their number and not the number of rows: from one
//! account to the next by the key that starts with `account_id`.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::account::{self, Account, AccountId};
use crate::error::Error;

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

    /// The next accounts after `after` with work due at `now`, in the order of their ids.
    pub(super) async fn find(
        &self,
        connection: &mut PgConnection,
        after: Uuid,
        now: DateTime<Utc>,
        limit: i64,
    ) -> Result<Vec<AccountId>, Error> {
        let found = sqlx::query_scalar(AssertSqlSafe(self.sql()))
            .bind(after)
            .bind(now)
            .bind(&self.argument)
            .bind(limit)
            .fetch_all(connection)
            .await?;
        Ok(found)
    }
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
            "select count(*) from (select from {table} work
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
