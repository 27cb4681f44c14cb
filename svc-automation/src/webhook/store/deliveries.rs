//! The SQL of deliveries.

use chassis::AccountId;
use chassis::list::{List, Total};
use chassis::paging::Page;
use chassis::row::Columns;
use chrono::{DateTime, TimeDelta, Utc};
use proto::api::PageMeta;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use crate::Error;
use crate::webhook::Delivery;

/// How long a delivery is shown and kept.
const KEPT: TimeDelta = TimeDelta::days(30);

macro_rules! delivery_columns {
    () => {
        "id, endpoint_id, event_id, type, payload, status, attempts, response_status, error, next_at, created_at, \
         delivered_at"
    };
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

pub(in crate::webhook) async fn list_deliveries(
    connection: &mut PgConnection,
    account: AccountId,
    endpoint: Uuid,
    (now, page): (DateTime<Utc>, Page),
) -> Result<(Vec<Delivery>, PageMeta), Error> {
    let mut list = List::new(account, "automation.webhook_delivery", delivery_columns!(), Total::Matching);
    list.equals("endpoint_id", endpoint).between("created_at", Some(now - KEPT), None);
    Ok(list.fetch(connection, page).await?)
}

pub(in crate::webhook) async fn find_delivery(
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

pub(in crate::webhook) async fn find_delivery_locked(
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
pub(in crate::webhook) async fn find_due(
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
pub(in crate::webhook) async fn insert_deliveries(
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
pub(in crate::webhook) async fn update_delivery(
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
