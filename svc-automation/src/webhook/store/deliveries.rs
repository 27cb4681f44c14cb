//! The SQL of deliveries.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_base::stored;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, TimeDelta, Utc};
use proto::api::PageMeta;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use crate::dispatcher::{Excluded, Item};
use crate::error::Error;
use crate::event::ReadAccess;
use crate::webhook::{Delivery, DeliveryStatus, Endpoint};

/// How long a delivery is shown and stored.
const RETENTION: TimeDelta = TimeDelta::days(30);
/// Deliveries that one statement postpones or fails.
const BATCH: i64 = 5000;

/// The last change of a delivery that never changed is its creation; its row may have the time of a migration there.
macro_rules! delivery_columns {
    () => {
        "id, endpoint_id, event_id, type, payload, status, attempts, response_status, error, next_at, created_at, \
         delivered_at, greatest(updated_at, created_at) as updated_at"
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
            status: stored::decode(
                "webhook_delivery.status",
                &columns.take::<String>()?,
                DeliveryStatus::from_name,
            )?,
            attempts: columns.take()?,
            response_status: columns.take()?,
            error: columns.take()?,
            next_at: columns.take()?,
            created_at: columns.take()?,
            delivered_at: columns.take()?,
            updated_at: columns.take()?,
        })
    }
}

/// Which deliveries a list shows.
pub(in crate::webhook) struct DeliveryFilter<'a> {
    pub selection: Selection,
    pub endpoint: Uuid,
    /// A delivery is readable when its event is.
    pub access: &'a ReadAccess,
    pub now: DateTime<Utc>,
    pub status: Option<DeliveryStatus>,
    pub kind: Option<&'a str>,
}

/// The times as `delivery_columns!` shows them.
const FIELDS: Fields = Fields { updated_at: "greatest(updated_at, created_at)", ..Fields::TIMES };

/// A page, newest first unless `filter` has another order.
pub(in crate::webhook) async fn list_deliveries(
    connection: &mut PgConnection,
    account: AccountId,
    filter: &DeliveryFilter<'_>,
    page: Page,
) -> Result<(Vec<Delivery>, PageMeta), Error> {
    let mut list = List::new(account, "automation.webhook_delivery", delivery_columns!(), Total::Matching);
    list.equals("endpoint_id", filter.endpoint).between("created_at", Some(filter.now - RETENTION), None);
    list.matching(|values| {
        let (account, readable) = (values.bind(account), filter.access.condition(values));
        format!(
            "event_id is null or exists (select from automation.event event \
             where event.account_id = {account} and event.id = event_id and ({readable}))"
        )
    });
    list.only("status", filter.status.map(DeliveryStatus::name)).only("type", filter.kind);
    list.select(&filter.selection, &FIELDS)?;
    Ok(list.fetch(connection, page).await?)
}

async fn find_delivery(
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

/// A delivery with the endpoint that it goes to.
pub(in crate::webhook) struct DeliveryToEndpoint {
    pub delivery: Delivery,
    pub endpoint: Endpoint,
}

/// `None` when the delivery or its endpoint was deleted.
pub(in crate::webhook) async fn find_with_endpoint(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<DeliveryToEndpoint>, Error> {
    let Some(delivery) = find_delivery(connection, account, id).await? else { return Ok(None) };
    let endpoint = super::find(connection, account, delivery.endpoint_id).await?;
    Ok(endpoint.map(|endpoint| DeliveryToEndpoint { delivery, endpoint }))
}

/// Finds a delivery and locks its row.
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

/// How many due deliveries to find.
#[derive(Clone, Copy)]
pub(in crate::webhook) struct DueLimits {
    pub per_endpoint: i64,
    pub total: i64,
}

/// Due deliveries, the longest due first, without the excluded ones and endpoints and without endpoints in backoff; the
/// group of a delivery is its endpoint. The lateral join reads the queue of each endpoint from its index, so a long queue
/// of one endpoint costs nothing when the others are searched.
pub(in crate::webhook) async fn find_due(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
    excluded: &Excluded,
    limits: DueLimits,
) -> Result<Vec<Item>, Error> {
    let due = sqlx::query_as(
        "select due.id, endpoint.id as group_id, endpoint.unanswered > 0 as probe
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
    .bind(&excluded.ids)
    .bind(&excluded.groups)
    .bind(limits.per_endpoint)
    .bind(limits.total)
    .fetch_all(connection)
    .await?;
    Ok(due)
}

/// Postpones the queue of an endpoint until then, at most [`BATCH`] deliveries.
pub(in crate::webhook) async fn postpone(
    connection: &mut PgConnection,
    account: AccountId,
    endpoint: Uuid,
    until: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update automation.webhook_delivery set next_at = $3, updated_at = $5 where account_id = $1 and id in (
            select id from automation.webhook_delivery
            where account_id = $1 and endpoint_id = $2 and next_at < $3 order by next_at limit $4)",
    )
    .bind(account)
    .bind(endpoint)
    .bind(until)
    .bind(BATCH)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

#[derive(chassis_derive::FromRow)]
struct Backoff {
    id: Uuid,
    retry_at: DateTime<Utc>,
}

/// Postpones the queues of all endpoints in backoff.
pub(in crate::webhook) async fn postpone_in_backoff(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let endpoints: Vec<Backoff> = sqlx::query_as(
        "select id, retry_at from automation.webhook_endpoint where account_id = $1 and retry_at > $2 order by id",
    )
    .bind(account)
    .bind(now)
    .fetch_all(&mut *connection)
    .await?;
    for endpoint in endpoints {
        postpone(connection, account, endpoint.id, endpoint.retry_at, now).await?;
    }
    Ok(())
}

/// Makes due what was postponed until `until` with its endpoint. Retries have other times and keep them.
pub(in crate::webhook) async fn resume(
    connection: &mut PgConnection,
    account: AccountId,
    endpoint: Uuid,
    until: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update automation.webhook_delivery set next_at = $4, updated_at = $4
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

/// Fails deliveries whose endpoint is gone: they were queued while another transaction deleted it.
pub(in crate::webhook) async fn fail_orphans(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update automation.webhook_delivery set next_at = null, status = 'failed', error = 'The endpoint is gone.',
            updated_at = $2
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
            (account_id, id, endpoint_id, event_id, type, payload, status, next_at, created_at, updated_at)
         select $1, id, endpoint_id, event_id, type, payload, status, next_at, created_at, created_at
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
    .bind(column(deliveries, |delivery| delivery.status.name()))
    .bind(column(deliveries, |delivery| delivery.next_at))
    .bind(column(deliveries, |delivery| delivery.created_at))
    .execute(connection)
    .await?;
    Ok(())
}

fn column<'a, T>(deliveries: &'a [Delivery], of: impl Fn(&'a Delivery) -> T) -> Vec<T> {
    deliveries.iter().map(of).collect()
}

/// Stores the state of a delivery.
pub(in crate::webhook) async fn update_delivery(
    connection: &mut PgConnection,
    account: AccountId,
    delivery: &Delivery,
) -> Result<(), Error> {
    sqlx::query(
        "update automation.webhook_delivery set status = $3, attempts = $4, response_status = $5, error = $6,
            next_at = $7, delivered_at = $8, updated_at = $9
         where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(delivery.id)
    .bind(delivery.status.name())
    .bind(delivery.attempts)
    .bind(delivery.response_status)
    .bind(&delivery.error)
    .bind(delivery.next_at)
    .bind(delivery.delivered_at)
    .bind(delivery.updated_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// Deletes old deliveries, at most `limit`; returns how many.
pub(in crate::webhook) async fn purge(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<u64, Error> {
    let purged = sqlx::query(
        "delete from automation.webhook_delivery where account_id = $1 and id in (
            select id from automation.webhook_delivery where account_id = $1 and created_at < $2 limit $3)",
    )
    .bind(account)
    .bind(now - RETENTION)
    .bind(limit)
    .execute(connection)
    .await?;
    Ok(purged.rows_affected())
}
