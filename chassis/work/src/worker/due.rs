//! Where the rows of a worker are and when they are due: the SQL that finds them, for one account or for all.
//!
//! The query for one account runs after every change to it and stays on the node that has the account's rows. The query
//! for all accounts runs rarely. It walks from one account to the next by the key that starts with `account_id`, so
//! that its cost depends on the number of accounts and not of rows. A step of the walk costs about as much as reading a
//! hundred rows in a scan, so a table with few rows for each account is scanned instead. A distributed database does not
//! support the walk; there, all nodes scan their due rows in parallel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chassis_base::{Account, AccountId, Error};
use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::time::Instant;
use uuid::Uuid;

/// Whether the database rejected the walk, because its rows are on several nodes.
static REFUSES_TO_WALK: AtomicBool = AtomicBool::new(false);
/// Whether a walk was tried. The first query is always one, to find out whether the database supports it.
static HAS_WALKED: AtomicBool = AtomicBool::new(false);
/// A table of this size, and so much larger than the table of accounts, is still scanned.
const SCANNED_BYTES: i64 = 16 << 20;
const SCANNED_SIZE_OF_ACCOUNTS: i64 = 8;
/// SQLSTATE `feature_not_supported`.
const UNSUPPORTED: &str = "0A000";
/// A time before all others, for rows that are due as soon as they exist.
pub const IMMEDIATELY: &str = "'2000-01-01'::timestamptz";

/// Where a worker's rows are and when they are due. All texts are SQL of the program, never input.
#[derive(Clone, Debug)]
pub struct Due {
    from: &'static str,
    live: &'static str,
    at: &'static str,
    later: &'static str,
    argument: String,
}

impl Due {
    /// `from` gives the worker's table the alias `work`; a key or index of it starts with `account_id`. `live` selects
    /// the rows that can become due and is served by an index. `at` is the time at which a row is due.
    pub fn new(from: &'static str, live: &'static str, at: &'static str) -> Self {
        Self { from, live, at, later: "0", argument: String::new() }
    }

    /// Delays the due time by an interval, for rows that are kept for a while.
    #[must_use]
    pub fn later(self, later: &'static str) -> Self {
        Self { later, ..self }
    }

    /// The value of `$argument` in `live`, for a table that several workers share.
    #[must_use]
    pub fn argument(self, argument: impl Into<String>) -> Self {
        Self { argument: argument.into(), ..self }
    }

    fn live(&self, argument: usize) -> String {
        self.live.replace("$argument", &format!("${argument}"))
    }

    /// The condition with the current time as `$2`.
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

    /// The same result at the cost of reading every due row, which each node does for its own rows.
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
        let is_first = !HAS_WALKED.swap(true, Ordering::Relaxed);
        if !is_distributed() && (is_first || !self.is_small(connection).await?) {
            match self.ask(self.walk_sql(), connection, after, now, limit).await {
                Err(error) if is_unsupported(&error) => REFUSES_TO_WALK.store(true, Ordering::Relaxed),
                answer => return Ok(answer?),
            }
        }
        Ok(self.ask(self.plain_sql(), connection, after, now, limit).await?)
    }

    /// Whether the worker's table is so small that scanning it is cheaper than a walk over the accounts.
    async fn is_small(&self, connection: &mut PgConnection) -> Result<bool, Error> {
        let Some(table) = self.table() else { return Ok(false) };
        let sql = "select coalesce(pg_relation_size(to_regclass($1))
                <= $2::bigint + $3::bigint * coalesce(pg_relation_size(to_regclass('account')), 0), false)";
        let query = sqlx::query_scalar(sql).bind(table).bind(SCANNED_BYTES).bind(SCANNED_SIZE_OF_ACCOUNTS);
        Ok(query.fetch_one(connection).await?)
    }

    /// The table whose alias is `work`, unless that is a subquery.
    fn table(&self) -> Option<&'static str> {
        let (table, _) = self.from.split_once(' ')?;
        let is_name = |character: char| character.is_ascii_lowercase() || "_.".contains(character);
        table.chars().all(is_name).then_some(table)
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

    /// How many rows of all accounts are due at `now`, counted up to `most`.
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

/// Whether the rows of the database are on several nodes, as far as this process has found out by a rejected walk.
pub(super) fn is_distributed() -> bool {
    REFUSES_TO_WALK.load(Ordering::Relaxed)
}

fn is_unsupported(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
        .is_some_and(|code| code == UNSUPPORTED)
}

/// A query for when some workers are next due for one account: one statement on one node.
pub(super) struct Question {
    sql: String,
    arguments: Vec<String>,
    workers: Vec<usize>,
}

/// The account with its settings, and when each requested worker is due, if at all.
pub(super) struct Answer {
    pub account: Arc<Account>,
    /// Taken before the query.
    pub asked: Instant,
    pub due: Vec<(usize, Option<DateTime<Utc>>)>,
}

impl Question {
    /// Each worker comes with the number that identifies it in the answer.
    pub(super) fn new<'a>(workers: impl IntoIterator<Item = (usize, &'a Due)>) -> Self {
        // An account may have work although this service has not received its settings and has no row for it.
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
        // Six accounts, two of each kind: work due, work done, work due later.
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
    async fn a_table_is_scanned_while_it_is_small() {
        let database = TestDatabase::new(&[("bare", &NONE)]).await;
        let mut connection = database.connect().await;
        assert!(queued().is_small(&mut connection).await.unwrap());
        let large = "create table bare.large as
            select gen_random_uuid() as account_id, repeat(n::text, 375) as text from generate_series(10000, 20000) n";
        sqlx::raw_sql(large).execute(&mut connection).await.unwrap();
        for (from, is_small) in
            [("bare.large work", false), ("bare.absent work", false), ("(select 1) work", false)]
        {
            let due = Due::new(from, "true", IMMEDIATELY);
            assert_eq!(due.is_small(&mut connection).await.unwrap(), is_small, "{from}");
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
