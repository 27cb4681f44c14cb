//! Where the work of a worker is, and when it is due: the SQL that asks for it, of one account or of all.
//!
//! Of one account it is asked after everything that may have changed it, and stays on the node that has the account's
//! rows. Of all it is asked rarely: at a cost that follows the number of accounts and not of rows, from one account to
//! the next by the key that starts with `account_id`, or where that is refused, on all nodes at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chassis_base::{Account, AccountId, Error};
use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::time::Instant;
use uuid::Uuid;

/// Whether the process' database is one that does not walk, because its rows are on several nodes.
static REFUSES_TO_WALK: AtomicBool = AtomicBool::new(false);
/// What it says then: feature not supported.
const UNSUPPORTED: &str = "0A000";
/// Before all work: for what is due as soon as it is there.
pub const IMMEDIATELY: &str = "'2000-01-01'::timestamptz";

/// Where a worker's work is and when it is due. All texts are SQL of the program itself, never input.
#[derive(Clone, Debug)]
pub struct Due {
    from: &'static str,
    live: &'static str,
    at: &'static str,
    later: &'static str,
    argument: String,
}

impl Due {
    /// `from` names the worker's own table as `work`; a key or index of it starts with `account_id`. `live` is a condition
    /// that an index serves: rows that may come due at all. `at` is when a row is due.
    pub fn new(from: &'static str, live: &'static str, at: &'static str) -> Self {
        Self { from, live, at, later: "0", argument: String::new() }
    }

    /// So much later, as an interval: what is kept for a while.
    #[must_use]
    pub fn later(self, later: &'static str) -> Self {
        Self { later, ..self }
    }

    /// A text for `$argument` in the condition, when one table serves several workers.
    #[must_use]
    pub fn argument(self, argument: impl Into<String>) -> Self {
        Self { argument: argument.into(), ..self }
    }

    fn live(&self, argument: usize) -> String {
        self.live.replace("$argument", &format!("${argument}"))
    }

    /// With the time as `$2`.
    fn is_due(&self) -> String {
        let Self { at, later, .. } = self;
        format!("{at} <= $2::timestamptz - interval '{later}'")
    }

    fn walk_sql(&self) -> String {
        let (from, live, due) = (self.from, self.live(3), self.is_due());
        format!(
            "with recursive walk as (
                (select work.account_id from {from} where work.account_id > $1 and {live}
                 order by work.account_id limit 1)
                union all
                select (select work.account_id from {from} where work.account_id > walk.account_id and {live}
                        order by work.account_id limit 1)
                from walk where walk.account_id is not null
             )
             select account_id from walk
             where account_id is not null and $3::text is not null and exists (
                select from {from} where work.account_id = walk.account_id and {live} and {due})
             limit $4"
        )
    }

    /// The same at the cost of looking at every row that is due: every node does it for its own.
    fn plain_sql(&self) -> String {
        let (from, live, due) = (self.from, self.live(3), self.is_due());
        format!(
            "select distinct work.account_id from {from}
             where work.account_id > $1 and $3::text is not null and {live} and {due}
             order by work.account_id limit $4"
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
        if !is_distributed() {
            match self.ask(self.walk_sql(), connection, after, now, limit).await {
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

    /// How many rows are due at `now`, of all accounts; `most` when there are more.
    pub(super) async fn count(
        &self,
        connection: &mut PgConnection,
        now: DateTime<Utc>,
        most: i64,
    ) -> Result<i64, Error> {
        let (from, live, due) = (self.from, self.live(3), self.is_due());
        let sql = format!(
            "select count(*) from (
                select 1 from {from} where {live} and {due} and $3::text is not null limit $1) due"
        );
        let query = sqlx::query_scalar(AssertSqlSafe(sql)).bind(most).bind(now).bind(&self.argument);
        Ok(query.fetch_one(connection).await?)
    }
}

/// Whether the rows of the database are on several nodes, as far as this process has found out.
pub(super) fn is_distributed() -> bool {
    REFUSES_TO_WALK.load(Ordering::Relaxed)
}

fn is_unsupported(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
        .is_some_and(|code| code == UNSUPPORTED)
}

/// When some workers are next due for one account, asked in one statement on one node.
pub(super) struct Question {
    sql: String,
    arguments: Vec<String>,
    workers: Vec<usize>,
}

/// The account with its settings, and for each worker that was asked for when it is due, if ever.
pub(super) struct Answer {
    pub account: Arc<Account>,
    /// Before it was read.
    pub asked: Instant,
    pub due: Vec<(usize, Option<DateTime<Utc>>)>,
}

impl Question {
    /// The workers come with the numbers by which the answer names them.
    pub(super) fn new<'a>(workers: impl IntoIterator<Item = (usize, &'a Due)>) -> Self {
        // An account that this service was not told of has no row there, and may have work all the same.
        let settings =
            "select -1, null::timestamptz, country, timezone, currency from account where account_id = $1";
        let mut parts = vec![settings.to_owned()];
        let (mut arguments, mut numbers) = (Vec::new(), Vec::new());
        for (number, due) in workers {
            let Due { from, at, later, .. } = due;
            let mut live = due.live.to_owned();
            if live.contains("$argument") {
                arguments.push(due.argument.clone());
                live = due.live(1 + arguments.len());
            }
            parts.push(format!(
                "(select {number}, {at} + interval '{later}', '', '', '' from {from}
                  where work.account_id = $1 and {live} order by {at} limit 1)"
            ));
            numbers.push(number);
        }
        Self { sql: parts.join(" union all "), arguments, workers: numbers }
    }

    pub(super) async fn ask(
        &self,
        connection: &mut PgConnection,
        account: AccountId,
    ) -> Result<Answer, Error> {
        type Row = (i32, Option<DateTime<Utc>>, String, String, String);
        let asked = Instant::now();
        let query = sqlx::query_as::<_, Row>(AssertSqlSafe(self.sql.as_str())).bind(account);
        let query = self.arguments.iter().fold(query, sqlx::query::QueryAs::bind);
        let (mut settings, mut found) = (Account::unknown(account), Vec::new());
        for (number, at, country, timezone, currency) in query.fetch_all(connection).await? {
            match usize::try_from(number) {
                Ok(number) => found.push((number, at)),
                Err(_) => settings = Account::stored(account, country, &timezone, currency),
            }
        }
        let at = |number: usize| found.iter().find(|(found, _)| *found == number).and_then(|(_, at)| *at);
        let due = self.workers.iter().map(|number| (*number, at(*number))).collect();
        Ok(Answer { account: Arc::new(settings), asked, due })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chassis_testing::TestDatabase;

    static NONE: sqlx::migrate::Migrator = sqlx::migrate::Migrator::DEFAULT;

    fn queued() -> Due {
        Due::new("bare.mail work", "work.status = 'queued'", "work.next_at")
    }

    async fn insert(
        connection: &mut PgConnection,
        account: u128,
        status: &str,
        next_at: DateTime<Utc>,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(
            "insert into bare.mail (account_id, id, sender, recipients, reference, status, next_at, created_at)
             values ($1, $2, '', '{}', '', $3, $4, $4)",
        )
        .bind(Uuid::from_u128(account))
        .bind(Uuid::new_v4())
        .bind(status)
        .bind(next_at)
        .execute(connection)
        .await
        .map(|_| ())
    }

    #[tokio::test]
    async fn both_ways_find_the_same_accounts() {
        let database = TestDatabase::new(&[("bare", &NONE)]).await;
        let mut connection = database.connect().await;
        let (now, soon) =
            (chassis_testing::moment(), chassis_testing::moment() + chrono::TimeDelta::seconds(1));
        // Of two each: one that has work, one whose work is done, one whose work comes later.
        for number in 0..12_u128 {
            let (status, next_at) =
                [("queued", now), ("sent", now), ("queued", soon)][usize::try_from(number % 3).unwrap()];
            insert(&mut connection, number / 6 * 3 + number % 3 + 1, status, next_at).await.unwrap();
        }
        for (after, limit, expected) in
            [(0, 10, vec![1, 4]), (1, 10, vec![4]), (0, 1, vec![1]), (4, 10, vec![])]
        {
            let due = queued();
            for sql in [due.walk_sql(), due.plain_sql()] {
                let found = due.ask(sql, &mut connection, Uuid::from_u128(after), now, limit).await.unwrap();
                let found: Vec<u128> = found.iter().map(|account| account.uuid().as_u128()).collect();
                assert_eq!(found, expected, "after {after}, at most {limit}");
            }
        }
    }

    #[tokio::test]
    async fn one_question_tells_when_each_worker_is_next_due() {
        let database = TestDatabase::new(&[("bare", &NONE)]).await;
        let mut connection = database.connect().await;
        sqlx::raw_sql("set search_path = bare, public").execute(&mut connection).await.unwrap();
        let now = chassis_testing::moment();
        let (soon, later) = (now + chrono::TimeDelta::seconds(1), now + chrono::TimeDelta::hours(1));
        for (account, at) in [(1, later), (1, soon), (2, now)] {
            insert(&mut connection, account, "queued", at).await.unwrap();
        }
        let (kept, other) = (queued().later("1 hour"), queued());
        let named = Due::new("mail work", "work.status = $argument", "work.next_at").argument("sent");
        let question = Question::new([(4, &kept), (7, &other), (9, &named)]);
        let answer = question.ask(&mut connection, AccountId::trust(Uuid::from_u128(1))).await.unwrap();
        let expected = vec![(4, Some(soon + chrono::TimeDelta::hours(1))), (7, Some(soon)), (9, None)];
        assert_eq!(answer.due, expected);
        assert_eq!(*answer.account, Account::unknown(AccountId::trust(Uuid::from_u128(1))));
    }
}
