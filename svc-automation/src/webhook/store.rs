//! The SQL of webhooks, and nothing else.

use chassis::AccountId;
use chassis::list::{List, Total};
use chassis::paging::Page;
use chassis::row::Columns;
use chrono::{DateTime, TimeDelta, Utc};
use proto::api::PageMeta;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{Delivery, Endpoint};
use crate::Error;
use crate::outside::Secret;

/// How long a delivery is shown and kept.
const KEPT: TimeDelta = TimeDelta::days(30);

macro_rules! endpoint_columns {
    () => {
        "id, url, description, types, active, notify_email, secret, old_secret, old_secret_until, failing_since, \
         disabled_reason, created_at, updated_at"
    };
}

macro_rules! delivery_columns {
    () => {
        "id, endpoint_id, event_id, type, payload, status, attempts, response_status, error, next_at, created_at, \
         delivered_at"
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
            disabled_reason: columns.take()?,
            created_at: columns.take()?,
            updated_at: columns.take()?,
        })
    }
}

/// In the order of `delivery_columns!`.
impl FromRow<'_, PgRow> for Delivery {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            endpoint_id: columns.take()?,
            event_id: columns.take()?,
            kind: columns.take()?,
            payload: columns.take()?,
            status: columns.take()?,
            attempts: columns.take()?,
            response_status: columns.take()?,
            error: columns.take()?,
            next_at: columns.take()?,
            created_at: columns.take()?,
            delivered_at: columns.take()?,
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

/// Active endpoints with the events that each wants.
pub(super) async fn list_active(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Vec<(Uuid, Vec<String>)>, Error> {
    let sql =
        "select id, types from automation.webhook_endpoint where account_id = $1 and active order by id";
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
             failing_since, disabled_reason, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
         on conflict (account_id, id) do update set
            url = $3, description = $4, types = $5, active = $6, notify_email = $7, secret = $8, old_secret = $9,
            old_secret_until = $10, failing_since = $11, disabled_reason = $12, updated_at = $14",
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

pub(super) async fn list_deliveries(
    connection: &mut PgConnection,
    account: AccountId,
    endpoint: Uuid,
    (now, page): (DateTime<Utc>, Page),
) -> Result<(Vec<Delivery>, PageMeta), Error> {
    let mut list = List::new(account, "automation.webhook_delivery", delivery_columns!(), Total::Matching);
    list.equals("endpoint_id", endpoint).between("created_at", Some(now - KEPT), None);
    Ok(list.fetch(connection, page).await?)
}

pub(super) async fn find_delivery(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Delivery>, Error> {
    let sql = concat!(
        "select ",
        delivery_columns!(),
        " from automation.webhook_delivery where account_id = $1 and id = $2"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

pub(super) async fn find_delivery_locked(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Delivery>, Error> {
    let sql = concat!(
        "select ",
        delivery_columns!(),
        " from automation.webhook_delivery where account_id = $1 and id = $2 for update"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Deliveries that are due, the longest waiting first, without those in `busy`.
pub(super) async fn find_due(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
    (busy, most): (&[Uuid], i64),
) -> Result<Vec<Uuid>, Error> {
    let due = sqlx::query_scalar(
        "select id from automation.webhook_delivery where account_id = $1 and next_at <= $2 and not id = any($3)
         order by next_at, id limit $4",
    )
    .bind(account)
    .bind(now)
    .bind(busy)
    .bind(most)
    .fetch_all(connection)
    .await?;
    Ok(due)
}

/// Stores new deliveries.
pub(super) async fn insert_deliveries(
    connection: &mut PgConnection,
    account: AccountId,
    deliveries: &[Delivery],
) -> Result<(), Error> {
    sqlx::query(
        "insert into automation.webhook_delivery
            (account_id, id, endpoint_id, event_id, type, payload, status, next_at, created_at)
         select $1, id, endpoint_id, event_id, type, payload, status, next_at, created_at
         from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::timestamptz[],
                     $9::timestamptz[])
            as delivery (id, endpoint_id, event_id, type, payload, status, next_at, created_at)",
    )
    .bind(account)
    .bind(column(deliveries, |delivery| delivery.id))
    .bind(column(deliveries, |delivery| delivery.endpoint_id))
    .bind(column(deliveries, |delivery| delivery.event_id))
    .bind(column(deliveries, |delivery| delivery.kind.as_str()))
    .bind(column(deliveries, |delivery| delivery.payload.as_str()))
    .bind(column(deliveries, |delivery| delivery.status.as_str()))
    .bind(column(deliveries, |delivery| delivery.next_at))
    .bind(column(deliveries, |delivery| delivery.created_at))
    .execute(connection)
    .await?;
    Ok(())
}

fn column<'a, T>(deliveries: &'a [Delivery], of: impl Fn(&'a Delivery) -> T) -> Vec<T> {
    deliveries.iter().map(of).collect()
}

/// Stores where a delivery stands.
pub(super) async fn update_delivery(
    connection: &mut PgConnection,
    account: AccountId,
    delivery: &Delivery,
) -> Result<(), Error> {
    sqlx::query(
        "update automation.webhook_delivery set status = $3, attempts = $4, response_status = $5, error = $6,
            next_at = $7, delivered_at = $8
         where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(delivery.id)
    .bind(&delivery.status)
    .bind(delivery.attempts)
    .bind(delivery.response_status)
    .bind(&delivery.error)
    .bind(delivery.next_at)
    .bind(delivery.delivered_at)
    .execute(connection)
    .await?;
    Ok(())
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

/// Forgets old deliveries, at most `most` of them; returns how many.
pub(crate) async fn purge(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
    most: i64,
) -> Result<u64, Error> {
    let purged = sqlx::query(
        "delete from automation.webhook_delivery where account_id = $1 and id in (
            select id from automation.webhook_delivery where account_id = $1 and created_at < $2 limit $3)",
    )
    .bind(account)
    .bind(now - KEPT)
    .bind(most)
    .execute(connection)
    .await?;
    Ok(purged.rows_affected())
}
