//! The SQL of deliveries.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{List, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, TimeDelta, Utc};
use proto::api::PageMeta;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use crate::Error;
use crate::event::readers::Reader;
use crate::pump::{Begun, Thing};
use crate::webhook::Delivery;

/// How long a delivery is shown and kept.
const KEPT: TimeDelta = TimeDelta::days(30);
/// Deliveries that one statement puts off.
const BATCH: i64 = 5000;

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
    reader: &Reader,
    (now, page): (DateTime<Utc>, Page),
) -> Result<(Vec<Delivery>, PageMeta), Error> {
    let mut list = List::new(account, "automation.webhook_delivery", delivery_columns!(), Total::Matching);
    list.equals("endpoint_id", endpoint).between("created_at", Some(now - KEPT), None);
    list.matching(|values| {
        let (account, readable) = (values.bind(account), reader.condition(values));
        format!(
            "event_id is null or exists (select from automation.event event \
             where event.account_id = {account} and event.id = event_id and ({readable}))"
        )
    });
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

/// Deliveries that are due, the longest waiting first, at most `per_endpoint` of each endpoint that is not left alone, and
/// without what has begun. From endpoint to endpoint, so that a long queue of one costs nothing when others are looked for.
pub(in crate::webhook) async fn find_due(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
    begun: &Begun,
    (per_endpoint, most): (i64, i64),
) -> Result<Vec<Thing>, Error> {
    let due: Vec<(Uuid, Uuid, bool)> = sqlx::query_as(
        "select due.id, endpoint.id, endpoint.unanswered > 0
         from automation.webhook_endpoint endpoint
         cross join lateral (
            select delivery.id, delivery.next_at from automation.webhook_delivery delivery
            where delivery.account_id = $1 and delivery.endpoint_id = endpoint.id and delivery.next_at <= $2
                and not delivery.id = any($3)
            order by delivery.next_at, delivery.id limit $5) due
         where endpoint.account_id = $1 and not endpoint.id = any($4)
            and (endpoint.retry_at is null or endpoint.retry_at <= $2)
         order by due.next_at, due.id limit $6",
    )
    .bind(account)
    .bind(now)
    .bind(&begun.ids)
    .bind(&begun.groups)
    .bind(per_endpoint)
    .bind(most)
    .fetch_all(connection)
    .await?;
    Ok(due.into_iter().map(|(id, group, probe)| Thing { id, group, probe }).collect())
}

/// Lets what an endpoint is still to be told wait until then, at most [`BATCH`] of it.
pub(in crate::webhook) async fn put_off(
    connection: &mut PgConnection,
    account: AccountId,
    endpoint: Uuid,
    until: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update automation.webhook_delivery set next_at = $3 where account_id = $1 and id in (
            select id from automation.webhook_delivery
            where account_id = $1 and endpoint_id = $2 and next_at < $3 order by next_at limit $4)",
    )
    .bind(account)
    .bind(endpoint)
    .bind(until)
    .bind(BATCH)
    .execute(connection)
    .await?;
    Ok(())
}

/// The same for every endpoint that is left alone now.
pub(in crate::webhook) async fn put_off_silent(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let silent: Vec<(Uuid, DateTime<Utc>)> = sqlx::query_as(
        "select id, retry_at from automation.webhook_endpoint where account_id = $1 and retry_at > $2 order by id",
    )
    .bind(account)
    .bind(now)
    .fetch_all(&mut *connection)
    .await?;
    for (endpoint, until) in silent {
        put_off(connection, account, endpoint, until).await?;
    }
    Ok(())
}

/// Makes due what has waited until then with its endpoint.
pub(in crate::webhook) async fn resume(
    connection: &mut PgConnection,
    account: AccountId,
    endpoint: Uuid,
    (until, now): (DateTime<Utc>, DateTime<Utc>),
) -> Result<(), Error> {
    sqlx::query(
        "update automation.webhook_delivery set next_at = $4
         where account_id = $1 and endpoint_id = $2 and next_at = $3 and next_at > $4",
    )
    .bind(account)
    .bind(endpoint)
    .bind(until)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

/// Gives up deliveries that came about while their endpoint was deleted.
pub(in crate::webhook) async fn abandon_orphans(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update automation.webhook_delivery set next_at = null, status = 'failed', error = 'The endpoint is gone.'
         where account_id = $1 and id in (
            select delivery.id from automation.webhook_delivery delivery
            where delivery.account_id = $1 and delivery.next_at <= $2 and not exists (
                select from automation.webhook_endpoint endpoint
                where endpoint.account_id = $1 and endpoint.id = delivery.endpoint_id)
            limit $3)",
    )
    .bind(account)
    .bind(now)
    .bind(BATCH)
    .execute(connection)
    .await?;
    Ok(())
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
