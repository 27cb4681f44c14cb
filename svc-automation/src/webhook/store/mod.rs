//! The SQL of webhooks, and nothing else.

mod deliveries;

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{List, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, Utc};
use proto::api::PageMeta;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{Binding, Endpoint};
use crate::Error;
use crate::event::readers::Reader;
use crate::outside::Secret;

pub(crate) use deliveries::purge;
pub(super) use deliveries::{
    abandon_orphans, find_delivery, find_delivery_locked, find_due, insert_deliveries, list_deliveries,
    put_off, put_off_silent, resume, update_delivery,
};

/// The last one: what the gateway has told of the key.
macro_rules! binding_columns {
    () => {
        "key_id, scopes, (select told.scopes from automation.key_scopes told \
         where told.account_id = $1 and told.key_id = webhook_endpoint.key_id) as told"
    };
}

macro_rules! endpoint_columns {
    () => {
        concat!(
            "id, url, description, types, active, notify_email, secret, old_secret, old_secret_until, failing_since, \
         unanswered, retry_at, disabled_reason, created_at, updated_at, ",
            binding_columns!()
        )
    };
}

/// In the order of `endpoint_columns!`.
impl FromRow<'_, PgRow> for Endpoint {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            url: columns.take()?,
            description: columns.take()?,
            types: columns.take()?,
            active: columns.take()?,
            notify_email: columns.take()?,
            secret: Secret::from_bytes(columns.take()?),
            old_secret: columns.take::<Option<Vec<u8>>>()?.map(Secret::from_bytes),
            old_secret_until: columns.take()?,
            failing_since: columns.take()?,
            unanswered: columns.take()?,
            retry_at: columns.take()?,
            disabled_reason: columns.take()?,
            created_at: columns.take()?,
            updated_at: columns.take()?,
            binding: Binding { key: columns.take()?, scopes: columns.take()?, told: columns.take()? },
        })
    }
}

pub(super) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    page: Page,
) -> Result<(Vec<Endpoint>, PageMeta), Error> {
    let list = List::new(account, "automation.webhook_endpoint", endpoint_columns!(), Total::Matching);
    Ok(list.fetch(connection, page).await?)
}

pub(super) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Endpoint>, Error> {
    let sql = concat!(
        "select ",
        endpoint_columns!(),
        " from automation.webhook_endpoint where account_id = $1 and id = $2"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Finds an endpoint that is about to be changed; others who want to change it wait.
pub(super) async fn find_locked(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Endpoint>, Error> {
    let sql = concat!(
        "select ",
        endpoint_columns!(),
        " from automation.webhook_endpoint where account_id = $1 and id = $2 for update"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// What decides whether and when an endpoint is told of an event.
pub(super) struct Active {
    pub id: Uuid,
    /// Empty: all events.
    pub types: Vec<String>,
    pub retry_at: Option<DateTime<Utc>>,
    binding: Binding,
}

impl Active {
    pub fn reader(&self) -> Reader {
        self.binding.reader()
    }
}

impl FromRow<'_, PgRow> for Active {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            types: columns.take()?,
            retry_at: columns.take()?,
            binding: Binding { key: columns.take()?, scopes: columns.take()?, told: columns.take()? },
        })
    }
}

/// Active endpoints.
pub(super) async fn list_active(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Vec<Active>, Error> {
    let sql = concat!(
        "select id, types, retry_at, ",
        binding_columns!(),
        " from automation.webhook_endpoint where account_id = $1 and active order by id"
    );
    Ok(sqlx::query_as(sql).bind(account).fetch_all(connection).await?)
}

/// Stores an endpoint, new or changed.
pub(super) async fn put(
    connection: &mut PgConnection,
    account: AccountId,
    endpoint: &Endpoint,
) -> Result<(), Error> {
    sqlx::query(
        "insert into automation.webhook_endpoint
            (account_id, id, url, description, types, active, notify_email, secret, old_secret, old_secret_until,
             failing_since, disabled_reason, created_at, updated_at, unanswered, retry_at, key_id, scopes)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
         on conflict (account_id, id) do update set
            url = $3, description = $4, types = $5, active = $6, notify_email = $7, secret = $8, old_secret = $9,
            old_secret_until = $10, failing_since = $11, disabled_reason = $12, updated_at = $14,
            unanswered = $15, retry_at = $16, key_id = $17, scopes = $18",
    )
    .bind(account)
    .bind(endpoint.id)
    .bind(&endpoint.url)
    .bind(&endpoint.description)
    .bind(&endpoint.types)
    .bind(endpoint.active)
    .bind(&endpoint.notify_email)
    .bind(endpoint.secret.as_bytes())
    .bind(endpoint.old_secret.as_ref().map(Secret::as_bytes))
    .bind(endpoint.old_secret_until)
    .bind(endpoint.failing_since)
    .bind(&endpoint.disabled_reason)
    .bind(endpoint.created_at)
    .bind(endpoint.updated_at)
    .bind(endpoint.unanswered)
    .bind(endpoint.retry_at)
    .bind(&endpoint.binding.key)
    .bind(&endpoint.binding.scopes)
    .execute(connection)
    .await?;
    Ok(())
}

/// How many endpoints an account has.
pub(super) async fn count(connection: &mut PgConnection, account: AccountId) -> Result<i64, Error> {
    let sql = "select count(*) from automation.webhook_endpoint where account_id = $1";
    Ok(sqlx::query_scalar(sql).bind(account).fetch_one(connection).await?)
}

/// Keeps what a key may do.
pub(super) async fn put_key_scopes(
    connection: &mut PgConnection,
    account: AccountId,
    (key, scopes): (&str, &[String]),
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into automation.key_scopes (account_id, key_id, scopes, updated_at) values ($1, $2, $3, $4)
         on conflict (account_id, key_id) do update set scopes = $3, updated_at = $4",
    )
    .bind(account)
    .bind(key)
    .bind(scopes)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes an endpoint with its deliveries; tells whether there was one.
pub(super) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<bool, Error> {
    sqlx::query("delete from automation.webhook_delivery where account_id = $1 and endpoint_id = $2")
        .bind(account)
        .bind(id)
        .execute(&mut *connection)
        .await?;
    let deleted = sqlx::query("delete from automation.webhook_endpoint where account_id = $1 and id = $2")
        .bind(account)
        .bind(id)
        .execute(connection)
        .await?;
    Ok(deleted.rows_affected() > 0)
}

/// The secret of the account's own requests, the one before it, and until when that signs along.
pub(super) type Signing = (Vec<u8>, Option<Vec<u8>>, Option<DateTime<Utc>>);

pub(super) async fn find_signing(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Option<Signing>, Error> {
    let sql =
        "select secret, old_secret, old_secret_until from automation.signing_secret where account_id = $1";
    Ok(sqlx::query_as(sql).bind(account).fetch_optional(connection).await?)
}

/// Stores a first secret unless there is one; tells whether it did.
pub(super) async fn insert_signing(
    connection: &mut PgConnection,
    account: AccountId,
    secret: &Secret,
) -> Result<bool, Error> {
    let sql =
        "insert into automation.signing_secret (account_id, secret) values ($1, $2) on conflict do nothing";
    let stored = sqlx::query(sql).bind(account).bind(secret.as_bytes()).execute(connection).await?;
    Ok(stored.rows_affected() > 0)
}

/// Puts a new secret in the place of the current one, which signs along until then.
pub(super) async fn rotate_signing(
    connection: &mut PgConnection,
    account: AccountId,
    secret: &Secret,
    until: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update automation.signing_secret set old_secret = secret, old_secret_until = $3, secret = $2
         where account_id = $1",
    )
    .bind(account)
    .bind(secret.as_bytes())
    .bind(until)
    .execute(connection)
    .await?;
    Ok(())
}
