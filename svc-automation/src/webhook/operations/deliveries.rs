//! Writes of deliveries: queueing them, recording their attempts, and what people do with them.

use chassis_data::Tx;
use chassis_work::mail::{Mail, Mailer, mailbox};
use chrono::{DateTime, TimeDelta, Utc};
use proto::automation::WebhookEndpoint;
use serde_json::json;
use uuid::Uuid;

use super::NOT_FOUND;
use super::endpoints::save_health;
use crate::error::Error;
use crate::event::{Event, rfc3339};
use crate::webhook::rules::{self, DeliveryResult, EndpointOutcome};
use crate::webhook::{Content, Delivery, DeliveryStatus, Endpoint, store};

const DELIVERY_NOT_FOUND: Error = Error::NotFound("delivery");
/// The event type of a ping.
const PING: &str = "webhook.ping";
/// If the process dies while it sends a ping, the worker sends it after this delay.
const PING_RECOVERY_DELAY: TimeDelta = TimeDelta::minutes(1);
/// The delay of an endpoint whose probe found no free slot.
const NO_SLOT_DELAY: TimeDelta = TimeDelta::seconds(15);

/// Queues the events for the account's endpoints.
pub(crate) async fn queue(tx: &mut Tx<'_>, events: &[Event]) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let endpoints = store::list_active(tx.db(), account).await?;
    let mut deliveries = Vec::new();
    for event in events {
        for endpoint in endpoints
            .iter()
            .filter(|one| rules::is_subscribed(&one.types, event) && one.access().allows(event))
        {
            let content = Content { event_id: Some(event.id), kind: &event.kind, payload: payload(event) };
            let mut delivery = Delivery::new(tx.id(), endpoint.id, content, now);
            // During a backoff it waits with the rest of the endpoint's queue.
            delivery.next_at = delivery.next_at.max(endpoint.retry_at);
            deliveries.push(delivery);
        }
    }
    if !deliveries.is_empty() {
        store::insert_deliveries(tx.db(), account, &deliveries).await?;
    }
    Ok(())
}

fn payload(event: &Event) -> String {
    let mut payload = event.to_json();
    payload["timestamp"] = json!(rfc3339(event.occurred_at));
    payload.to_string()
}

/// Stores a ping. It is sent after the commit, and recorded with [`record_ping`].
pub(in crate::webhook) async fn create_ping(tx: &mut Tx<'_>, endpoint: Uuid) -> Result<Delivery, Error> {
    let (account, now) = (tx.account(), tx.now());
    let endpoint = store::find(tx.db(), account, endpoint).await?.ok_or(NOT_FOUND)?;
    let payload = json!({"type": PING, "timestamp": rfc3339(now), "data": {"endpoint_id": endpoint.id}});
    let content = Content { event_id: None, kind: PING, payload: payload.to_string() };
    let mut delivery = Delivery::new(tx.id(), endpoint.id, content, now);
    delivery.next_at = Some(now + PING_RECOVERY_DELAY);
    store::insert_deliveries(tx.db(), account, std::slice::from_ref(&delivery)).await?;
    Ok(delivery)
}

/// Stores the result of a ping.
pub(in crate::webhook) async fn record_ping(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<(), Error> {
    let account = tx.account();
    store::update_delivery(tx.db(), account, delivery).await
}

/// Makes a delivery due again, with all its attempts. Ends the backoff of its endpoint, because the caller asks for an
/// attempt now. `id` is `None` when the path has no valid id of a delivery.
///
/// Locks the endpoint first and the delivery second, [`record_attempt`] the other way round. When the two meet, Postgres
/// ends one of them as a deadlock and that transaction is run again.
pub(in crate::webhook) async fn redeliver(
    tx: &mut Tx<'_>,
    endpoint_id: Uuid,
    id: Option<Uuid>,
) -> Result<Delivery, Error> {
    let (account, now) = (tx.account(), tx.now());
    let mut endpoint = store::find_locked(tx.db(), account, endpoint_id).await?.ok_or(NOT_FOUND)?;
    if let Some(retry_at) = endpoint.retry_at {
        let before = WebhookEndpoint::from(endpoint.clone());
        rules::clear_backoff(&mut endpoint);
        save_health(tx, &mut endpoint, &before).await?;
        store::resume(tx.db(), account, endpoint_id, retry_at, now).await?;
    }
    let id = id.ok_or(DELIVERY_NOT_FOUND)?;
    let found = store::find_delivery_locked(tx.db(), account, id).await?;
    let found = found.filter(|delivery| delivery.endpoint_id == endpoint_id);
    let mut delivery = found.ok_or(DELIVERY_NOT_FOUND)?;
    delivery.status = DeliveryStatus::Pending;
    delivery.attempts = 0;
    delivery.next_at = Some(now);
    delivery.delivered_at = None;
    delivery.updated_at = now;
    store::update_delivery(tx.db(), account, &delivery).await?;
    Ok(delivery)
}

/// An attempt that has ended.
pub(in crate::webhook) struct Attempt {
    pub delivery: Uuid,
    /// How many attempts there were before it. If there are more now, another process has made this attempt too and has
    /// recorded it.
    pub attempts_before: i32,
    pub result: DeliveryResult,
    pub outcome: EndpointOutcome,
    pub started_at: DateTime<Utc>,
    /// Decides whether the endpoint is disabled, here as in the lookup of `notice`.
    pub ended_at: DateTime<Utc>,
    /// Who is notified if the endpoint is disabled.
    pub notice: Option<Notice>,
}

pub(in crate::webhook) struct Notice {
    pub to: String,
    pub mailer: Mailer,
}

/// Records an attempt in its delivery and in the endpoint. Locks the delivery first and the endpoint second.
pub(in crate::webhook) async fn record_attempt(tx: &mut Tx<'_>, attempt: &Attempt) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let found = store::find_delivery_locked(tx.db(), account, attempt.delivery).await?;
    let found = found.filter(|found| found.attempts == attempt.attempts_before);
    let Some(mut delivery) = found else { return Ok(()) };
    rules::record_attempt(&mut delivery, &attempt.result, now);
    store::update_delivery(tx.db(), account, &delivery).await?;
    let is_failure = attempt.result.error.is_some();
    let label = if is_failure { "failed" } else { "delivered" };
    metrics::counter!("webhook_attempts_total", "outcome" => label).increment(1);
    // A success of a healthy endpoint changes nothing in it. Deliveries are many, so it is not locked for that: all
    // deliveries of the endpoint would wait for one another.
    let endpoint = store::find(tx.db(), account, delivery.endpoint_id).await?;
    let is_healthy = |endpoint: &Endpoint| endpoint.failing_since.is_none() && endpoint.unanswered == 0;
    if endpoint.is_none_or(|endpoint| !is_failure && is_healthy(&endpoint)) {
        return Ok(());
    }
    let Some(mut endpoint) = store::find_locked(tx.db(), account, delivery.endpoint_id).await? else {
        return Ok(());
    };
    let (before, old_retry_at) = (WebhookEndpoint::from(endpoint.clone()), endpoint.retry_at);
    let is_disabled =
        rules::record_outcome(&mut endpoint, attempt.outcome, attempt.started_at, attempt.ended_at);
    save_health(tx, &mut endpoint, &before).await?;
    match (endpoint.retry_at, old_retry_at) {
        (Some(until), _) => store::postpone(tx.db(), account, endpoint.id, until, now).await?,
        (None, Some(old)) => store::resume(tx.db(), account, endpoint.id, old, now).await?,
        (None, None) => {}
    }
    if is_disabled {
        tracing::warn!(endpoint = %endpoint.id, "webhook endpoint disabled");
        queue_notice(tx, &endpoint, attempt.notice.as_ref()).await?;
    }
    Ok(())
}

/// Postpones the queue of an endpoint whose probe found no free slot.
pub(in crate::webhook) async fn postpone(tx: &mut Tx<'_>, endpoint: &Uuid) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    store::postpone(tx.db(), account, *endpoint, now + NO_SLOT_DELAY, now).await
}

/// Postpones what is due to endpoints in backoff, and fails what has no endpoint.
pub(in crate::webhook) async fn settle_undispatchable(tx: &mut Tx<'_>, (): &()) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    store::postpone_in_backoff(tx.db(), account, now).await?;
    store::fail_orphans(tx.db(), account, now).await
}

/// A delivery that will not be attempted.
pub(in crate::webhook) struct DroppedDelivery {
    pub id: Uuid,
    pub reason: &'static str,
}

pub(in crate::webhook) async fn drop_delivery(
    tx: &mut Tx<'_>,
    dropped: &DroppedDelivery,
) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    if let Some(mut delivery) = store::find_delivery_locked(tx.db(), account, dropped.id).await? {
        rules::fail(&mut delivery);
        delivery.updated_at = now;
        dropped.reason.clone_into(&mut delivery.error);
        store::update_delivery(tx.db(), account, &delivery).await?;
    }
    Ok(())
}

async fn queue_notice(tx: &mut Tx<'_>, endpoint: &Endpoint, notice: Option<&Notice>) -> Result<(), Error> {
    let account = tx.account();
    let Some(notice) = notice else { return Ok(()) };
    let Some(to) = mailbox("", &notice.to) else { return Ok(()) };
    let sender = notice.mailer.sender(tx.db(), account, "", "").await?;
    let mut mail = Mail::new(sender.from, vec![to], "A webhook endpoint was switched off");
    let since = endpoint.failing_since.map(rfc3339).unwrap_or_default();
    mail.text = Some(format!(
        "Every delivery to\n\n    {}\n\nhas failed since {since}, so it was switched off and gets no more events.\n\
         \n\
         When it works again, switch it on: PATCH /v1/webhook-endpoints/{} with {{\"active\": true}}. What it has missed\n\
         is listed at GET /v1/events.\n",
        endpoint.url, endpoint.id
    ));
    mail.reference = format!("webhook-endpoint:{}", endpoint.id);
    chassis_work::mail::queue(tx, &mail).await?;
    Ok(())
}

/// Deletes old deliveries, at most `limit`; returns how many.
pub(crate) async fn purge(tx: &mut Tx<'_>, limit: i64) -> Result<u64, Error> {
    let (account, now) = (tx.account(), tx.now());
    store::purge(tx.db(), account, now, limit).await
}
