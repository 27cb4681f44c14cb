//! The rows of a kind of records: in the order of their keys, and their versions.

use chassis_base::{AccountId, Error, id};
use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection};

/// Where the records of a kind are. All texts are SQL of the program, never input. The table has the columns `version` and
/// `updated_at`.
#[derive(Clone, Copy, Debug)]
pub struct RecordTable {
    pub kind: &'static str,
    table: &'static str,
    key: Key,
    only: &'static str,
    pub(super) volatile: &'static [u32],
}

/// What the id of a record in the log is made of. A table can have many rows only if an index begins with the account and
/// this.
#[derive(Clone, Copy, Debug)]
pub enum Key {
    /// A column that is a UUID.
    Uuid(&'static str),
    /// A column that is a text, or an expression.
    Text(&'static str),
}

impl RecordTable {
    pub const fn new(kind: &'static str, table: &'static str, key: Key) -> Self {
        Self { kind, table, key, only: "true", volatile: &[] }
    }

    /// Restricts the records to some rows of the table.
    #[must_use]
    pub const fn only(self, only: &'static str) -> Self {
        Self { only, ..self }
    }

    /// The numbers of the fields that differ whenever the record is read, such as a link that expires. They are not compared.
    #[must_use]
    pub const fn volatile(self, volatile: &'static [u32]) -> Self {
        Self { volatile, ..self }
    }

    /// The ids of the records after one, in the order of their keys, and whether there may be more. Locks their rows.
    pub(super) async fn lock_page(
        &self,
        connection: &mut PgConnection,
        account: AccountId,
        after: &str,
        limit: i64,
    ) -> Result<(Vec<String>, bool), Error> {
        let Self { table, only, .. } = self;
        let (key, beyond) = match self.key {
            Key::Uuid(key) => (key, "coalesce(nullif($2, ''), '00000000-0000-0000-0000-000000000000')::uuid"),
            Key::Text(key) => (key, "$2"),
        };
        let sql = format!(
            "select ({key})::text as record_id from {table} where account_id = $1 and {only} and {key} > {beyond}
             order by {key} limit $3 for update"
        );
        let query = sqlx::query_scalar(AssertSqlSafe(sql)).bind(account).bind(after).bind(limit);
        let mut ids: Vec<String> = query.fetch_all(connection).await?;
        let is_full = i64::try_from(ids.len()).is_ok_and(|count| count == limit);
        // A record can have several rows.
        ids.dedup();
        Ok((ids, is_full))
    }

    /// Which of these records exist. Locks their rows.
    pub(super) async fn lock(
        &self,
        connection: &mut PgConnection,
        account: AccountId,
        ids: &[String],
    ) -> Result<Vec<String>, Error> {
        let Self { table, only, .. } = self;
        let (key, kind) = self.key.column_and_type();
        let sql = format!(
            "select ({key})::text as record_id from {table} where account_id = $1 and {only} and {key} = any($2::text[]::{kind}[])
             order by {key} for update"
        );
        // Nothing has a key that cannot be one.
        let is_key = |text: &&String| kind == "text" || id::parse(text).is_some();
        let ids: Vec<&String> = ids.iter().filter(is_key).collect();
        let query = sqlx::query_scalar(AssertSqlSafe(sql)).bind(account).bind(ids);
        Ok(query.fetch_all(connection).await?)
    }

    /// Gives records a version above their present one and above the one that they have in the log.
    pub(super) async fn raise(
        &self,
        connection: &mut PgConnection,
        account: AccountId,
        ids: &[String],
        logged: &[i64],
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let Self { table, only, .. } = self;
        let (key, kind) = self.key.column_and_type();
        let sql = format!(
            "update {table} set version = greatest(version, logged) + 1, updated_at = $4
             from unnest($2::text[], $3::bigint[]) as known (record_id, logged)
             where account_id = $1 and {only} and {key} = record_id::{kind}"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(account).bind(ids).bind(logged).bind(now);
        query.execute(connection).await?;
        Ok(())
    }
}

impl Key {
    fn column_and_type(self) -> (&'static str, &'static str) {
        match self {
            Self::Uuid(key) => (key, "uuid"),
            Self::Text(key) => (key, "text"),
        }
    }
}
