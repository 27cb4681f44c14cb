//! The SQL of keys.

use chassis::AccountId;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;

/// A key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct KeyRow {
    pub account_id: AccountId,
    pub public_id: String,
    pub name: String,
    pub scopes: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    pub last_used_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// What authentication needs of a key and its account.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct KnownKey {
    #[sqlx(flatten)]
    pub key: KeyRow,
    pub secret_hash: Vec<u8>,
    pub country: String,
    pub timezone: String,
    pub currency: String,
}

/// One of [`list_for_authentication`].
pub async fn find_for_authentication(
    connection: &mut PgConnection,
    public_id: &str,
) -> Result<Option<KnownKey>, sqlx::Error> {
    Ok(list_for_authentication(connection, &[public_id]).await?.pop())
}

/// A look-up without an account: the keys say which accounts they are for. `last_used_at` is left out, so that two reads
/// of an unchanged key are equal.
pub async fn list_for_authentication(
    connection: &mut PgConnection,
    public_ids: &[&str],
) -> Result<Vec<KnownKey>, sqlx::Error> {
    sqlx::query_as(
        "select k.account_id, k.public_id, k.name, k.scopes, k.created_at, k.expires_at,
                null::timestamptz as last_used_at, k.revoked_at, k.secret_hash, a.country, a.timezone, a.currency
         from api_key k join account a on a.account_id = k.account_id
         where k.public_id = any($1)",
    )
    .bind(public_ids)
    .fetch_all(connection)
    .await
}

pub async fn insert(
    connection: &mut PgConnection,
    row: &KeyRow,
    secret_hash: &[u8; 32],
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "insert into api_key (account_id, public_id, name, secret_hash, scopes, created_at, expires_at, tell_at)
         values ($1, $2, $3, $4, $5, $6, $7, $7)",
    )
    .bind(row.account_id)
    .bind(&row.public_id)
    .bind(&row.name)
    .bind(secret_hash.as_slice())
    .bind(&row.scopes)
    .bind(row.created_at)
    .bind(row.expires_at)
    .execute(connection)
    .await?;
    Ok(())
}

pub async fn list(connection: &mut PgConnection, account: AccountId) -> Result<Vec<KeyRow>, sqlx::Error> {
    sqlx::query_as(
        "select account_id, public_id, name, scopes, created_at, expires_at, last_used_at, revoked_at
         from api_key where account_id = $1 order by created_at, public_id",
    )
    .bind(account)
    .fetch_all(connection)
    .await
}

/// Revokes a key; one that is revoked already keeps its time. `None` when there is no such key.
pub async fn revoke(
    connection: &mut PgConnection,
    public_id: &str,
    now: DateTime<Utc>,
) -> Result<Option<KeyRow>, sqlx::Error> {
    sqlx::query_as(
        "update api_key set revoked_at = coalesce(revoked_at, $2), tell_at = $2 where public_id = $1
         returning account_id, public_id, name, scopes, created_at, expires_at, last_used_at, revoked_at",
    )
    .bind(public_id)
    .bind(now)
    .fetch_optional(connection)
    .await
}

/// Takes scopes from a key: those that are not among these. `None` when there is no such key.
pub async fn narrow(
    connection: &mut PgConnection,
    public_id: &str,
    scopes: &[String],
    now: DateTime<Utc>,
) -> Result<Option<KeyRow>, sqlx::Error> {
    sqlx::query_as(
        "update api_key set tell_at = $3,
            scopes = array(select scope from unnest(scopes) as scope where scope = any($2) order by scope)
         where public_id = $1
         returning account_id, public_id, name, scopes, created_at, expires_at, last_used_at, revoked_at",
    )
    .bind(public_id)
    .bind(scopes)
    .bind(now)
    .fetch_optional(connection)
    .await
}

/// Writes down when keys were last used. Repeatable; a later time of another replica stays.
pub async fn note_uses(
    connection: &mut PgConnection,
    uses: &[(AccountId, &str, DateTime<Utc>)],
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "update api_key k set last_used_at = u.used_at
         from unnest($1::uuid[], $2::text[], $3::timestamptz[]) as u (account_id, public_id, used_at)
         where k.account_id = u.account_id and k.public_id = u.public_id
           and (k.last_used_at is null or k.last_used_at < u.used_at)",
    )
    .bind(uses.iter().map(|(account, _, _)| account.uuid()).collect::<Vec<_>>())
    .bind(uses.iter().map(|(_, public_id, _)| *public_id).collect::<Vec<_>>())
    .bind(uses.iter().map(|(_, _, used_at)| *used_at).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}
