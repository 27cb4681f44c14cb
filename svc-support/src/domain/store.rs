//! The SQL of domains, and nothing else.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::Record;
use crate::error::Error;

macro_rules! columns {
    () => {
        "version, host, domain, subdomain, receiving, verified, selector, private_key, found, checked_at, check_at, \
         missing_since, created_at, updated_at"
    };
}

/// The number of domains that an account can have.
pub(crate) const MAX_DOMAINS: i64 = 100;

/// All domains, or only the verified or the pending ones, by name.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    verified: Option<bool>,
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from support.domain where account_id = $1 and ($2::boolean is null or verified = $2) \
         order by domain, subdomain"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(verified).fetch_all(connection).await?)
}

/// The domains whose next check is due, at most `max`, the longest overdue first.
pub(crate) async fn list_due(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
    max: i64,
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from support.domain where account_id = $1 and check_at <= $2 order by check_at, host limit $3"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(now).bind(max).fetch_all(connection).await?)
}

pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    host: &str,
) -> Result<Option<Record>, Error> {
    let sql = concat!("select ", columns!(), " from support.domain where account_id = $1 and host = $2");
    Ok(sqlx::query_as(sql).bind(account).bind(host).fetch_optional(connection).await?)
}

/// Finds a domain and locks its row: a change reads it, decides and writes it back.
pub(crate) async fn find_locked(
    connection: &mut PgConnection,
    account: AccountId,
    host: &str,
) -> Result<Option<Record>, Error> {
    let sql =
        concat!("select ", columns!(), " from support.domain where account_id = $1 and host = $2 for update");
    Ok(sqlx::query_as(sql).bind(account).bind(host).fetch_optional(connection).await?)
}

pub(crate) async fn count(connection: &mut PgConnection, account: AccountId) -> Result<i64, Error> {
    let sql = "select count(*) from support.domain where account_id = $1";
    Ok(sqlx::query_scalar(sql).bind(account).fetch_one(connection).await?)
}

/// Stores a new domain. Returns false, and stores nothing, when the account has it already.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<bool, Error> {
    let sql = "insert into support.domain (account_id, host, domain, subdomain, receiving, verified, selector, \
               private_key, found, checked_at, check_at, missing_since, created_at, updated_at, version) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) \
               on conflict (account_id, host) do nothing";
    let inserted = sqlx::query(sql)
        .bind(account)
        .bind(&record.host)
        .bind(&record.domain)
        .bind(&record.subdomain)
        .bind(record.receiving)
        .bind(record.verified)
        .bind(&record.selector)
        .bind(&record.private_key)
        .bind(&record.found)
        .bind(record.checked_at)
        .bind(record.check_at)
        .bind(record.missing_since)
        .bind(record.created_at)
        .bind(record.updated_at)
        .bind(record.version)
        .execute(connection)
        .await?;
    Ok(inserted.rows_affected() > 0)
}

/// Stores all columns of a domain that can change.
pub(crate) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let sql = "update support.domain set receiving = $3, verified = $4, found = $5, checked_at = $6, updated_at = $7, \
               check_at = $8, missing_since = $9, version = $10 where account_id = $1 and host = $2";
    sqlx::query(sql)
        .bind(account)
        .bind(&record.host)
        .bind(record.receiving)
        .bind(record.verified)
        .bind(&record.found)
        .bind(record.checked_at)
        .bind(record.updated_at)
        .bind(record.check_at)
        .bind(record.missing_since)
        .bind(record.version)
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores the result of a check that does not change whether the domain is verified, and when the next one is due.
pub(crate) async fn record_check(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let sql = "update support.domain set found = $3, checked_at = $4, check_at = $5, missing_since = $6 \
               where account_id = $1 and host = $2";
    sqlx::query(sql)
        .bind(account)
        .bind(&record.host)
        .bind(&record.found)
        .bind(record.checked_at)
        .bind(record.check_at)
        .bind(record.missing_since)
        .execute(connection)
        .await?;
    Ok(())
}

pub(crate) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    host: &str,
) -> Result<(), Error> {
    let sql = "delete from support.domain where account_id = $1 and host = $2";
    sqlx::query(sql).bind(account).bind(host).execute(connection).await?;
    Ok(())
}

/// The account that receives the mail of a host.
pub(crate) async fn find_route(
    connection: &mut PgConnection,
    host: &str,
) -> Result<Option<AccountId>, Error> {
    let sql = "select account_id from support.mail_route where host = $1";
    Ok(sqlx::query_scalar(sql).bind(host).fetch_optional(connection).await?)
}

/// Routes the mail of a host to an account, unless it is routed already. Returns the account that has it afterwards. The
/// update that changes nothing makes the statement return the row, and lock it, in both cases.
pub(crate) async fn put_route(
    connection: &mut PgConnection,
    account: AccountId,
    host: &str,
    now: DateTime<Utc>,
) -> Result<AccountId, Error> {
    let sql = "insert into support.mail_route (host, account_id, created_at) values ($1, $2, $3) \
               on conflict (host) do update set host = excluded.host returning account_id";
    Ok(sqlx::query_scalar(sql).bind(host).bind(account).bind(now).fetch_one(connection).await?)
}

pub(crate) async fn delete_route(
    connection: &mut PgConnection,
    account: AccountId,
    host: &str,
) -> Result<(), Error> {
    let sql = "delete from support.mail_route where host = $1 and account_id = $2";
    sqlx::query(sql).bind(host).bind(account).execute(connection).await?;
    Ok(())
}
