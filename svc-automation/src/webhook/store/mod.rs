//! The SQL of webhooks: endpoints here, deliveries and secrets in files of their own.

mod deliveries;
mod secrets;

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, Utc};
use proto::api::PageMeta;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{Binding, Endpoint};
use crate::egress::Secret;
use crate::error::Error;
use crate::event::ReadAccess;

pub(super) use deliveries::{
    DeliveryFilter, DeliveryToEndpoint, DueLimits, fail_orphans, find_delivery_locked, find_due,
    find_with_endpoint, insert_deliveries, list_deliveries, postpone, postpone_in_backoff, purge, resume,
    update_delivery,
};
pub(super) use secrets::{find_signing, insert_signing, rotate_signing};

/// The last one: the scopes that the key has now, as the gateway reported.
macro_rules! binding_columns {
    () => {
        "key_id, scopes, (select reported.scopes from automation.key_scopes reported \
         where reported.account_id = $1 and reported.key_id = webhook_endpoint.key_id) as reported"
    };
}

macro_rules! endpoint_columns {
    () => {
        concat!(
            "id, url, description, types, active, notify_email, secret, old_secret, old_secret_until, failing_since, \
         unanswered, retry_at, disabled_reason, version, created_at, updated_at, ",
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
            version: columns.take()?,
            created_at: columns.take()?,
            updated_at: columns.take()?,
            binding: Binding { key: columns.take()?, scopes: columns.take()?, reported: columns.take()? },
        })
    }
}

/// A page of all endpoints, or of those that are active or inactive; newest first unless `selection` has another order.
pub(super) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    selection: &Selection,
    active: Option<bool>,
    page: Page,
) -> Result<(Vec<Endpoint>, PageMeta), Error> {
    let mut list = List::new(account, "automation.webhook_endpoint", endpoint_columns!(), Total::Matching);
    list.only("active", active).select(selection, &Fields::TIMES)?;
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

/// Finds an endpoint and locks its row: changes of it happen one after the other.
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

/// The part of an endpoint that decides whether and when it gets an event.
pub(super) struct Subscription {
    pub id: Uuid,
    /// Empty: all events.
    pub types: Vec<String>,
    pub retry_at: Option<DateTime<Utc>>,
    binding: Binding,
}

impl Subscription {
    pub(super) fn access(&self) -> ReadAccess {
        self.binding.access()
    }
}

impl FromRow<'_, PgRow> for Subscription {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            types: columns.take()?,
            retry_at: columns.take()?,
            binding: Binding { key: columns.take()?, scopes: columns.take()?, reported: columns.take()? },
        })
    }
}

/// The active endpoints.
pub(super) async fn list_active(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Vec<Subscription>, Error> {
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
             failing_since, disabled_reason, created_at, updated_at, unanswered, retry_at, key_id, scopes, version)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
         on conflict (account_id, id) do update set
            url = $3, description = $4, types = $5, active = $6, notify_email = $7, secret = $8, old_secret = $9,
            old_secret_until = $10, failing_since = $11, disabled_reason = $12, updated_at = $14,
            unanswered = $15, retry_at = $16, key_id = $17, scopes = $18, version = $19",
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
    .bind(endpoint.version)
    .execute(connection)
    .await?;
    Ok(())
}

/// How many endpoints an account has.
pub(super) async fn count(connection: &mut PgConnection, account: AccountId) -> Result<i64, Error> {
    let sql = "select count(*) from automation.webhook_endpoint where account_id = $1";
    Ok(sqlx::query_scalar(sql).bind(account).fetch_one(connection).await?)
}

/// Stores the scopes of a key.
pub(super) async fn put_key_scopes(
    connection: &mut PgConnection,
    account: AccountId,
    key: &str,
    scopes: &[String],
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
