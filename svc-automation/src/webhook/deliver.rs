//! Delivers: makes the attempts that are due, each endpoint for itself. One that does not answer in time is left alone for a
//! while with its whole queue and then tried with one delivery; one that fails for days is switched off.

use std::sync::Arc;
use std::time::Duration;

use chassis_base::{Account, Error};
use chassis_data::Tx;
use chassis_rpc::call::AUTOMATION_DEPTH;
use chassis_rpc::peer::Peers;
use chassis_rpc::token::{self, Tokens};
use chassis_service::Runtime;
use chassis_work::Worker;
use chassis_work::mail::{Mail, Mailer, mailbox};
use chassis_work::worker::{Due, Job};
use chrono::{DateTime, TimeDelta, Utc};
use proto::billing::ListIdentitiesRequest;
use proto::billing::settings_service_client::SettingsServiceClient;
use tokio::time::Instant;
use tonic::Request;
use tonic::metadata::MetadataValue;
use uuid::Uuid;

use super::rules::{Answered, follow, give_up, is_out_of_patience, judge, note};
use super::{AUDITED, Delivery, Endpoint, store};
use crate::event::store as events;
use crate::outside::{Outgoing, Outside};
use crate::pump::{self, Begun, Limits, SLOW_AFTER, Thing, Work};
use crate::run::start::MAX_DEPTH;

/// Deliveries of one account, and to one endpoint, at the same time.
const LIMITS: Limits = Limits { at_once: 16, per_group: 8 };
const TIMEOUT: Duration = Duration::from_secs(15);
/// Why a delivery is not made.
const SWITCHED_OFF: &str = "The endpoint is switched off.";
const NOT_READABLE: &str = "The key of the endpoint may not read this.";
const TOO_DEEP: &str = "Not delivered: automation led to the event too many times in a row. Make sure that nothing feeds itself.";
/// How long an endpoint waits that was to be tried when too many others were.
const NO_PLACE: TimeDelta = TimeDelta::seconds(15);

/// The worker that delivers what is due.
pub(crate) fn worker(runtime: &Runtime, outside: Outside) -> Worker {
    let due = Due::new("webhook_delivery work", "work.next_at is not null", "work.next_at");
    let deliverer = Deliverer {
        outside,
        post: runtime.mailer.clone(),
        peers: runtime.peers.clone(),
        tokens: runtime.tokens.clone(),
    };
    pump::worker("webhooks", due, LIMITS, Arc::new(deliverer))
}

pub(crate) struct Deliverer {
    pub outside: Outside,
    pub post: Mailer,
    pub peers: Peers,
    pub tokens: Tokens,
}

/// What an attempt came to.
struct Attempt {
    delivery: Uuid,
    /// How many attempts there were before: whoever has made one since has noted it.
    before: i32,
    outcome: (Option<i32>, Option<String>),
    answered: Answered,
    begun_at: DateTime<Utc>,
    /// When it ended: whether the endpoint is switched off is judged by one clock.
    at: DateTime<Utc>,
    /// Who is told should the endpoint be switched off, and how mail goes.
    notice: Option<(String, Mailer)>,
}

/// A delivery that is not made.
struct Dropped {
    id: Uuid,
    why: &'static str,
}

#[tonic::async_trait]
impl Work for Deliverer {
    async fn due(&self, job: &Job, begun: &Begun, most: i64) -> Result<Vec<Thing>, Error> {
        let per_endpoint = i64::try_from(LIMITS.per_group).unwrap_or(i64::MAX);
        let due = job
            .db()
            .read(async |connection| {
                let limits = (per_endpoint, most);
                let due = store::find_due(connection, job.account_id(), job.now(), begun, limits).await?;
                Ok::<_, Error>(due)
            })
            .await?;
        Ok(due)
    }

    async fn put_off(&self, job: &Job, endpoint: Uuid) -> Result<(), Error> {
        job.write(&endpoint, put_off).await
    }

    async fn tidy(&self, job: &Job) -> Result<(), Error> {
        job.write(&(), tidy).await
    }

    async fn perform(&self, job: &Job, id: Uuid) -> Result<(), Error> {
        let mut connection = job.db().acquire().await?;
        let delivery = store::find_delivery(&mut connection, job.account_id(), id).await?;
        let endpoint = match &delivery {
            Some(delivery) => store::find(&mut connection, job.account_id(), delivery.endpoint_id).await?,
            None => None,
        };
        // Looked at when it goes out: the key may have lost what it had when the event was heard.
        let is_readable = match (delivery.as_ref().and_then(|one| one.event_id), &endpoint) {
            (Some(event), Some(endpoint)) => {
                let event = events::find(&mut connection, job.account_id(), event).await?;
                event.is_some_and(|event| endpoint.binding.reader().may_read(&event))
            }
            _ => true,
        };
        let event = delivery.as_ref().and_then(|delivery| delivery.event_id);
        let depth = events::find_depth(&mut connection, job.account_id(), event).await?.saturating_add(1);
        connection.done();
        // Deleted since it was found.
        let (Some(delivery), Some(endpoint)) = (delivery, endpoint) else { return Ok(()) };
        if !endpoint.active {
            return job.write(&Dropped { id, why: SWITCHED_OFF }, drop_delivery).await;
        }
        if !is_readable {
            return job.write(&Dropped { id, why: NOT_READABLE }, drop_delivery).await;
        }
        if depth > MAX_DEPTH {
            return job.write(&Dropped { id, why: TOO_DEEP }, drop_delivery).await;
        }
        let (begun_at, begun) = (job.now(), Instant::now());
        let outcome = self.attempt(&delivery, &endpoint, depth, job.now()).await;
        let (failed, at) = (outcome.1.is_some(), job.now());
        let answered = match failed {
            false => Answered::WithSuccess,
            true if begun.elapsed() >= SLOW_AFTER => Answered::Late,
            true => Answered::WithFailure,
        };
        // Looked up before the transaction that switches it off, so that the mail is queued in it.
        let notice = if failed && is_out_of_patience(&endpoint, at) {
            self.address(job, &endpoint).await.map(|to| (to, self.post.clone()))
        } else {
            None
        };
        let attempt =
            Attempt { delivery: id, before: delivery.attempts, outcome, answered, begun_at, at, notice };
        job.write(&attempt, settle).await
    }
}

impl Deliverer {
    pub(super) async fn attempt(
        &self,
        delivery: &Delivery,
        endpoint: &Endpoint,
        depth: u32,
        now: DateTime<Utc>,
    ) -> (Option<i32>, Option<String>) {
        let outgoing = Outgoing {
            method: "POST".to_owned(),
            url: endpoint.url.clone(),
            headers: vec![(AUTOMATION_DEPTH.to_owned(), depth.to_string())],
            body: delivery.payload.clone(),
            id: delivery.id.to_string(),
            secrets: endpoint.secrets(now),
            timeout: TIMEOUT,
        };
        judge(self.outside.send(&outgoing, now).await)
    }

    /// Who is told that an endpoint was switched off: whom it names, or the business.
    async fn address(&self, job: &Job, endpoint: &Endpoint) -> Option<String> {
        if endpoint.notify_email.is_empty() {
            return self.business_address(job.account(), job.now()).await;
        }
        Some(endpoint.notify_email.clone())
    }

    async fn business_address(&self, account: &Account, now: DateTime<Utc>) -> Option<String> {
        let peer = self.peers.get("billing")?;
        let mut request = Request::new(ListIdentitiesRequest {});
        request.set_timeout(TIMEOUT);
        let token = self.tokens.to(peer.name()).mint_mesh(account, "automation", now);
        request.metadata_mut().insert(token::HEADER, MetadataValue::try_from(token).ok()?);
        let identities = SettingsServiceClient::new(peer.channel()).list_identities(request).await;
        let identities = identities.inspect_err(|status| {
            tracing::warn!(code = ?status.code(), "the address of the business is not known");
        });
        let all = identities.ok()?.into_inner().data;
        let default = all.into_iter().find(|identity| identity.is_default)?;
        default.values.map(|values| values.email).filter(|email| !email.is_empty())
    }
}

/// Notes an attempt in the delivery and in the endpoint.
async fn settle(tx: &mut Tx<'_>, attempt: &Attempt) -> Result<(), crate::Error> {
    let (account, now) = (tx.account(), tx.now());
    let found = store::find_delivery_locked(tx.db(), account, attempt.delivery).await?;
    let Some(mut delivery) = found.filter(|found| found.attempts == attempt.before) else { return Ok(()) };
    note(&mut delivery, &attempt.outcome, now);
    store::update_delivery(tx.db(), account, &delivery).await?;
    let failed = attempt.outcome.1.is_some();
    let label = if failed { "failed" } else { "delivered" };
    metrics::counter!("webhook_attempts_total", "outcome" => label).increment(1);
    // A success after a success changes nothing, and deliveries come in great numbers: they need not wait in line.
    let known = store::find(tx.db(), account, delivery.endpoint_id).await?;
    let is_well = |endpoint: &Endpoint| endpoint.failing_since.is_none() && endpoint.unanswered == 0;
    if known.is_none_or(|endpoint| !failed && is_well(&endpoint)) {
        return Ok(());
    }
    let Some(mut endpoint) = store::find_locked(tx.db(), account, delivery.endpoint_id).await? else {
        return Ok(());
    };
    let waited = endpoint.retry_at;
    let off = follow(&mut endpoint, attempt.answered, (attempt.begun_at, attempt.at));
    store::put(tx.db(), account, &endpoint).await?;
    match (endpoint.retry_at, waited) {
        (Some(until), _) => store::put_off(tx.db(), account, endpoint.id, until).await?,
        (None, Some(waited)) => store::resume(tx.db(), account, endpoint.id, (waited, now)).await?,
        (None, None) => {}
    }
    if off {
        tx.changed(AUDITED, endpoint.id, &endpoint.shown());
        tracing::warn!(endpoint = %endpoint.id, "a webhook endpoint was switched off");
        queue_notice(tx, &endpoint, attempt.notice.as_ref()).await?;
    } else {
        tx.unaudited("how deliveries fare is no change of an endpoint");
    }
    Ok(())
}

/// Lets an endpoint wait with everything that it is still to be told.
async fn put_off(tx: &mut Tx<'_>, endpoint: &Uuid) -> Result<(), crate::Error> {
    let (account, until) = (tx.account(), tx.now() + NO_PLACE);
    store::put_off(tx.db(), account, *endpoint, until).await
}

/// Puts off what is due to endpoints that are left alone, and gives up what is for none.
async fn tidy(tx: &mut Tx<'_>, (): &()) -> Result<(), crate::Error> {
    let (account, now) = (tx.account(), tx.now());
    store::put_off_silent(tx.db(), account, now).await?;
    store::abandon_orphans(tx.db(), account, now).await
}

/// What an endpoint that is switched off or may not read it has not been told, it will not be.
async fn drop_delivery(tx: &mut Tx<'_>, dropped: &Dropped) -> Result<(), crate::Error> {
    let account = tx.account();
    if let Some(mut delivery) = store::find_delivery_locked(tx.db(), account, dropped.id).await? {
        give_up(&mut delivery);
        dropped.why.clone_into(&mut delivery.error);
        store::update_delivery(tx.db(), account, &delivery).await?;
    }
    Ok(())
}

async fn queue_notice(
    tx: &mut Tx<'_>,
    endpoint: &Endpoint,
    notice: Option<&(String, Mailer)>,
) -> Result<(), crate::Error> {
    let account = tx.account();
    let Some((to, post)) = notice.and_then(|(to, post)| Some((mailbox("", to)?, post))) else {
        return Ok(());
    };
    let sender = post.sender(tx.db(), account, "", "").await?;
    let mut mail = Mail::new(sender.from, vec![to], "A webhook endpoint was switched off");
    let since = endpoint.failing_since.map(crate::event::rfc3339).unwrap_or_default();
    mail.text = Some(format!(
        "Every delivery to\n\n    {}\n\nhas failed since {since}, so it was switched off and is not told of events any more.\n\
         \n\
         When it works again, switch it on: PATCH /v1/webhook-endpoints/{} with {{\"active\": true}}. What it has missed\n\
         is listed at GET /v1/events.\n",
        endpoint.url, endpoint.id
    ));
    mail.reference = format!("webhook-endpoint:{}", endpoint.id);
    chassis_work::mail::queue(tx, &mail).await?;
    Ok(())
}
