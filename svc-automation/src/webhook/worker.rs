//! Delivers events to endpoints, each endpoint independently of the others. An endpoint that does not respond in time gets
//! a backoff for its whole queue and is then probed with one delivery; one that fails for days is disabled.

use std::sync::Arc;

use chassis_base::Error;
use chassis_work::Worker;
use chassis_work::worker::{Due, Job};
use sqlx::PgConnection;
use tokio::time::Instant;
use uuid::Uuid;

use super::operations::deliveries::{self, Attempt, DroppedDelivery, Notice};
use super::rules::{EndpointOutcome, is_about_to_be_disabled};
use super::store::{self, DeliveryToEndpoint, DueLimits};
use super::{Delivery, Endpoint, Sender};
use crate::dispatcher::{self, Excluded, Item, Limits, SLOW_AFTER, WorkQueue};
use crate::event::rules::MAX_DEPTH;
use crate::event::store as events;

/// Deliveries of one account, and to one endpoint, at the same time.
const LIMITS: Limits = Limits { per_account: 16, per_group: 8 };
/// Why a delivery is dropped.
const DISABLED: &str = "The endpoint is switched off.";
const NOT_READABLE: &str = "The key of the endpoint may not read this.";
const TOO_DEEP: &str = "Not delivered: automation led to the event too many times in a row. Make sure that nothing feeds itself.";

/// The worker that makes the attempts that are due.
pub(crate) fn worker(sender: Arc<Sender>) -> Worker {
    let due = Due::new("webhook_delivery work", "work.next_at is not null", "work.next_at");
    dispatcher::worker("webhooks", due, LIMITS, Arc::new(Deliverer { sender }))
}

struct Deliverer {
    sender: Arc<Sender>,
}

/// A delivery with what an attempt needs.
struct LoadedDelivery {
    delivery: Delivery,
    endpoint: Endpoint,
    /// Whether the key of the endpoint may read the event now.
    is_readable: bool,
    /// How many runs in a row the delivery would be part of.
    depth: u32,
}

/// `None` when the delivery or its endpoint was deleted.
async fn load(job: &Job, id: Uuid) -> Result<Option<LoadedDelivery>, Error> {
    let account = job.account_id();
    let read = async |connection: &mut PgConnection| {
        let Some(found) = store::find_with_endpoint(connection, account, id).await? else { return Ok(None) };
        let DeliveryToEndpoint { delivery, endpoint } = found;
        // Decided for each attempt: the key may have lost scopes since the event was queued.
        let is_readable = match delivery.event_id {
            Some(event) => {
                let event = events::find_for_access(connection, account, event).await?;
                event.is_some_and(|event| endpoint.binding.access().allows(&event))
            }
            None => true,
        };
        let depth = events::find_depth(connection, account, delivery.event_id).await?.saturating_add(1);
        Ok(Some(LoadedDelivery { delivery, endpoint, is_readable, depth }))
    };
    job.db().read(read).await
}

#[tonic::async_trait]
impl WorkQueue for Deliverer {
    async fn due(&self, job: &Job, excluded: &Excluded, limit: i64) -> Result<Vec<Item>, Error> {
        let per_endpoint = i64::try_from(LIMITS.per_group).unwrap_or(i64::MAX);
        let limits = DueLimits { per_endpoint, total: limit };
        let due = job
            .db()
            .read(async |connection| {
                store::find_due(connection, job.account_id(), job.now(), excluded, limits).await
            })
            .await?;
        Ok(due)
    }

    async fn postpone_group(&self, job: &Job, endpoint: Uuid) -> Result<(), Error> {
        job.write(&endpoint, deliveries::postpone).await
    }

    async fn settle_undispatchable(&self, job: &Job) -> Result<(), Error> {
        job.write(&(), deliveries::settle_undispatchable).await
    }

    async fn perform(&self, job: &Job, id: Uuid) -> Result<(), Error> {
        let Some(LoadedDelivery { delivery, endpoint, is_readable, depth }) = load(job, id).await? else {
            return Ok(());
        };
        let reason = if !endpoint.active {
            Some(DISABLED)
        } else if !is_readable {
            Some(NOT_READABLE)
        } else {
            (depth > MAX_DEPTH).then_some(TOO_DEEP)
        };
        if let Some(reason) = reason {
            return job.write(&DroppedDelivery { id, reason }, deliveries::drop_delivery).await;
        }
        let (started_at, start) = (job.now(), Instant::now());
        let result = self.sender.attempt(&delivery, &endpoint, depth, job.now()).await;
        let ended_at = job.now();
        let outcome = match &result.error {
            None => EndpointOutcome::Success,
            Some(_) if start.elapsed() >= SLOW_AFTER => EndpointOutcome::Late,
            Some(_) => EndpointOutcome::Failure,
        };
        // Looked up before the transaction that disables the endpoint, because that must not wait for another service.
        let notice = if result.error.is_some() && is_about_to_be_disabled(&endpoint, ended_at) {
            let address = self.sender.notify_address(job, &endpoint).await;
            address.map(|to| Notice { to, mailer: self.sender.mailer.clone() })
        } else {
            None
        };
        let attempt = Attempt {
            delivery: id,
            attempts_before: delivery.attempts,
            result,
            outcome,
            started_at,
            ended_at,
            notice,
        };
        job.write(&attempt, deliveries::record_attempt).await
    }
}
