//! The SQL of keys.

use chassis_base::paging::Page;
use chassis_base::{AccountId, Error};
use chassis_data::list::{Fields, List, Selection, Total};
use chrono::{DateTime, Utc};
use proto::api::PageMeta;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use super::{KeyWithAccount, Record};

/// When a key was last used.
pub(crate) struct KeyUse<'a> {
    pub account_id: AccountId,
    pub public_id: &'a str,
    pub used_at: DateTime<Utc>,
}

/// The tables whose scopes are sent to automation. Both have the columns that the queries here use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScopeTable {
    ApiKey,
    Credential,
}

impl ScopeTable {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::Credential => "credential",
        }
    }
}

/// A key or a credential whose scopes were not sent to automation yet.
#[derive(chassis_derive::FromRow)]
pub(crate) struct UnsyncedScopes {
    pub public_id: String,
    pub scopes: Vec<String>,
    pub expires_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
    tell_at: DateTime<Utc>,
}

/// In the order of [`Record`]. A key that the release before has made while it ran beside this one has no id and no time of its
/// last change.
macro_rules! columns {
    () => {
        "coalesce(id, md5(public_id)::uuid) as id, account_id, public_id, name, scopes, strict, created_at, \
         coalesce(updated_at, revoked_at, created_at) as updated_at, expires_at, last_used_at, revoked_at"
    };
}

/// Keys with their accounts. `last_used_at` is left out, so that two reads of an unchanged key are equal.
macro_rules! with_account {
    ($condition:literal) => {
        concat!(
            "select coalesce(k.id, md5(k.public_id)::uuid) as id, k.account_id, k.public_id, k.name, k.scopes, k.strict, \
             k.created_at, coalesce(k.updated_at, k.revoked_at, k.created_at) as updated_at, k.expires_at, \
             null::timestamptz as last_used_at, k.revoked_at, k.secret_hash, a.country, a.timezone, a.currency \
             from api_key k join account a on a.account_id = k.account_id where k.public_id ",
            $condition
        )
    };
}

/// Finds a key by its public id, of any account: a request has nothing but its key. With an array, Postgres would plan the
/// statement anew each time.
pub(crate) async fn find_with_account(
    connection: &mut PgConnection,
    public_id: &str,
) -> Result<Option<KeyWithAccount>, sqlx::Error> {
    sqlx::query_as(with_account!("= $1")).bind(public_id).fetch_optional(connection).await
}

/// Finds several keys; see [`find_with_account`].
pub(crate) async fn list_with_accounts(
    connection: &mut PgConnection,
    public_ids: &[&str],
) -> Result<Vec<KeyWithAccount>, sqlx::Error> {
    if let [public_id] = public_ids {
        return Ok(find_with_account(connection, public_id).await?.into_iter().collect());
    }
    sqlx::query_as(with_account!("= any($1)")).bind(public_ids).fetch_all(connection).await
}

pub(crate) async fn insert(
    connection: &mut PgConnection,
    record: &Record,
    secret_hash: &[u8; 32],
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "insert into api_key (account_id, public_id, name, secret_hash, scopes, strict, created_at, expires_at, tell_at, \
         id, updated_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $7)",
    )
    .bind(record.account_id)
    .bind(&record.public_id)
    .bind(&record.name)
    .bind(secret_hash.as_slice())
    .bind(&record.scopes)
    .bind(record.strict)
    .bind(record.created_at)
    .bind(record.expires_at)
    .bind(record.id)
    .execute(connection)
    .await?;
    Ok(())
}

/// Which keys of an account a page shows.
pub(crate) struct Filter {
    pub selection: Selection,
    /// Only those that can be used, or only those that cannot.
    pub active: Option<bool>,
    pub now: DateTime<Utc>,
}

pub(crate) async fn page(
    connection: &mut PgConnection,
    account: AccountId,
    filter: &Filter,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "api_key", columns!(), Total::Matching);
    if let Some(active) = filter.active {
        list.matching(|values| {
            let now = values.bind(filter.now);
            let usable = format!("revoked_at is null and (expires_at is null or expires_at > {now})");
            if active { usable } else { format!("not ({usable})") }
        });
    }
    list.select(&filter.selection, &Fields::TIMES)?;
    list.fetch(connection, page).await
}

/// A key of an account by its id, locked.
pub(crate) async fn find_locked(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, sqlx::Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from api_key where account_id = $1 and (id = $2 or (id is null and md5(public_id)::uuid = $2)) for update"
    );
    sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await
}

/// A key of an account by its public id.
pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    public_id: &str,
) -> Result<Option<Record>, sqlx::Error> {
    let sql = concat!("select ", columns!(), " from api_key where account_id = $1 and public_id = $2");
    sqlx::query_as(sql).bind(account).bind(public_id).fetch_optional(connection).await
}

/// How many keys of an account can be used.
pub(crate) async fn count_usable(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "select count(*) from api_key
         where account_id = $1 and revoked_at is null and (expires_at is null or expires_at > $2)",
    )
    .bind(account)
    .bind(now)
    .fetch_one(connection)
    .await
}

pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Vec<Record>, sqlx::Error> {
    sqlx::query_as(concat!(
        "select ",
        columns!(),
        " from api_key where account_id = $1 order by created_at, public_id"
    ))
    .bind(account)
    .fetch_all(connection)
    .await
}

/// Revokes a key. A second revocation keeps the time of the first. `None` when the key is absent.
pub(crate) async fn revoke(
    connection: &mut PgConnection,
    public_id: &str,
    now: DateTime<Utc>,
) -> Result<Option<Record>, sqlx::Error> {
    sqlx::query_as(concat!(
        "update api_key set revoked_at = coalesce(revoked_at, $2), tell_at = $2,
            updated_at = case when revoked_at is null then $2 else updated_at end
         where public_id = $1 returning ",
        columns!()
    ))
    .bind(public_id)
    .bind(now)
    .fetch_optional(connection)
    .await
}

/// Removes the scopes of a key that are not among these. `None` when the key is absent.
pub(crate) async fn narrow(
    connection: &mut PgConnection,
    public_id: &str,
    scopes: &[String],
    now: DateTime<Utc>,
) -> Result<Option<Record>, sqlx::Error> {
    sqlx::query_as(concat!(
        "update api_key set tell_at = $3, updated_at = $3,
            scopes = array(select scope from unnest(scopes) as scope where scope = any($2) order by scope)
         where public_id = $1 returning ",
        columns!()
    ))
    .bind(public_id)
    .bind(scopes)
    .bind(now)
    .fetch_optional(connection)
    .await
}

/// Records when keys were last used. Repeatable; a later time of another replica stays.
pub(crate) async fn record_uses(
    connection: &mut PgConnection,
    uses: &[KeyUse<'_>],
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "update api_key k set last_used_at = u.used_at
         from unnest($1::uuid[], $2::text[], $3::timestamptz[]) as u (account_id, public_id, used_at)
         where k.account_id = u.account_id and k.public_id = u.public_id
           and (k.last_used_at is null or k.last_used_at < u.used_at)",
    )
    .bind(uses.iter().map(|key| key.account_id.uuid()).collect::<Vec<_>>())
    .bind(uses.iter().map(|key| key.public_id).collect::<Vec<_>>())
    .bind(uses.iter().map(|key| key.used_at).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// The keys of an account that are due to be sent to automation, the longest due first.
pub(crate) async fn list_unsynced(
    connection: &mut PgConnection,
    table: ScopeTable,
    account: AccountId,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<UnsyncedScopes>, sqlx::Error> {
    let sql = format!(
        "select public_id, scopes, expires_at, revoked_at, tell_at from {}
         where account_id = $1 and tell_at <= $2 order by tell_at, public_id limit $3",
        table.name()
    );
    sqlx::query_as(AssertSqlSafe(sql)).bind(account).bind(now).bind(limit).fetch_all(connection).await
}

/// Makes a key due at `next`, or never. A key that has changed since it was read stays due.
pub(crate) async fn mark_synced(
    connection: &mut PgConnection,
    table: ScopeTable,
    account: AccountId,
    read: &UnsyncedScopes,
    next: Option<DateTime<Utc>>,
) -> Result<(), sqlx::Error> {
    // Compares what was sent too, and not only `tell_at`: two changes can have the same time.
    let sql = format!(
        "update {} set tell_at = $4 where account_id = $1 and public_id = $2 and tell_at = $3
            and scopes = $5 and revoked_at is not distinct from $6",
        table.name()
    );
    sqlx::query(AssertSqlSafe(sql))
        .bind(account)
        .bind(&read.public_id)
        .bind(read.tell_at)
        .bind(next)
        .bind(&read.scopes)
        .bind(read.revoked_at)
        .execute(connection)
        .await?;
    Ok(())
}
