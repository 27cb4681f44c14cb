//! Delivers events to their listeners: at least once, in order per entity, independently for each listener.
//!
//! While a listener is unreachable, its events wait. An event that a listener refuses is retried and holds up only the
//! later events of its entity. After the last attempt it becomes a dead letter, and the later events are delivered
//! without it.

use std::collections::HashSet;
use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use chassis_base::Error;
use chassis_base::error::status::explain;
use chassis_base::time::timestamp;
use chassis_data::write::Tx;
use chassis_rpc::peer::Peer;
use chassis_rpc::token::{self, Tokens};
use chrono::{DateTime, TimeDelta, Utc};
use proto::api::DeliverEventsRequest;
use proto::api::event_listener_service_client::EventListenerServiceClient;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Status};
use uuid::Uuid;

use crate::worker::{Due, Job, Next, Worker, backoff};

/// The maximum events and data bytes of one call: a message must stay below the size limit of a listener.
const BATCH: i64 = 100;
const BATCH_BYTES: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(10);
/// The number of refusals after which an event is dead, in about half an hour.
pub const MAX_ATTEMPTS: i32 = 12;
const INITIAL_BACKOFF: TimeDelta = TimeDelta::seconds(1);
const MAX_BACKOFF: TimeDelta = TimeDelta::minutes(10);

/// The worker that serves one listener.
pub fn worker(service: &'static str, peer: Peer, tokens: Tokens) -> Worker {
    let live = "work.dead_at is null and work.listener = $argument";
    let due = Due::new("outbox work", live, "work.next_at").argument(peer.name());
    let name = format!("relay:{}", peer.name());
    let relay = Arc::new(Relay { service, peer, tokens });
    Worker::new(name, due, move |job| {
        let relay = Arc::clone(&relay);
        async move { relay.run(&job).await }
    })
}

struct Relay {
    service: &'static str,
    peer: Peer,
    tokens: Tokens,
}

#[derive(sqlx::FromRow)]
struct Pending {
    entity_type: String,
    entity_id: Uuid,
    sequence: i64,
    id: Uuid,
    r#type: String,
    data: String,
    occurred_at: DateTime<Utc>,
    depth: i32,
    attempts: i32,
}

/// The result of delivering a batch.
#[derive(Default)]
struct Outcome {
    listener: String,
    delivered: Vec<Pending>,
    refused: Vec<(Pending, Status)>,
    /// Why the remaining events were not delivered.
    interrupted: Option<Status>,
}

impl Relay {
    async fn run(&self, job: &Job) -> Result<Next, Error> {
        let (batch, more) = self.batch(job).await?;
        if batch.is_empty() {
            return Ok(Next::WhenDue);
        }
        let outcome = self.deliver_all(job, batch).await;
        self.settle(job, &outcome).await?;
        match outcome.interrupted {
            Some(status) => Err(Error::Peer(Box::new(status))),
            None if more => Ok(Next::Now),
            None => Ok(Next::WhenDue),
        }
    }

    /// The next events in delivery order, and whether there are more. An event that is not due holds back the later
    /// events of its entity.
    async fn batch(&self, job: &Job) -> Result<(Vec<Pending>, bool), Error> {
        // `offset 0` prevents a join, which would read the account's whole backlog for every batch.
        let query = sqlx::query_as(
            "select entity_type, entity_id, sequence, id, type, data, occurred_at, depth, attempts from outbox event
             where account_id = $1 and listener = $2 and dead_at is null and not exists (
                select from outbox earlier
                where earlier.account_id = $1 and earlier.listener = event.listener
                    and earlier.entity_type = event.entity_type and earlier.entity_id = event.entity_id
                    and earlier.sequence <= event.sequence and earlier.dead_at is null and earlier.next_at > $3
                offset 0)
             order by entity_type, entity_id, sequence limit $4",
        )
        .bind(job.account_id())
        .bind(self.peer.name())
        .bind(job.now())
        .bind(BATCH);
        let mut batch: Vec<Pending> =
            job.db().read(async |connection| Ok::<_, Error>(query.fetch_all(connection).await?)).await?;
        let full = i64::try_from(batch.len()).is_ok_and(|count| count == BATCH);
        let (mut bytes, depth) = (0, batch.first().map_or(0, |event| event.depth));
        // The events that a listener emits derive their depth from the call, so a call has events of one depth only.
        let fitting = batch.iter().take_while(|event| {
            bytes += event.data.len();
            bytes <= BATCH_BYTES && event.depth == depth
        });
        let fitting = fitting.count().max(1);
        let cut = fitting < batch.len();
        batch.truncate(fitting);
        Ok((batch, full || cut))
    }

    /// Delivers the batch in one call. If the listener refuses it, delivers each event separately.
    async fn deliver_all(&self, job: &Job, batch: Vec<Pending>) -> Outcome {
        let mut outcome = Outcome { listener: self.peer.name().to_owned(), ..Outcome::default() };
        if batch.len() > 1 {
            match self.deliver(job, &batch).await {
                Ok(()) => outcome.delivered = batch,
                Err(status) if is_refusal(&status) => self.deliver_each(job, batch, &mut outcome).await,
                Err(status) => outcome.interrupted = Some(status),
            }
        } else {
            self.deliver_each(job, batch, &mut outcome).await;
        }
        outcome
    }

    async fn deliver_each(&self, job: &Job, batch: Vec<Pending>, outcome: &mut Outcome) {
        let mut blocked = HashSet::new();
        for event in batch {
            let entity = (event.entity_type.clone(), event.entity_id);
            if blocked.contains(&entity) {
                continue;
            }
            match self.deliver(job, std::slice::from_ref(&event)).await {
                Ok(()) => outcome.delivered.push(event),
                Err(status) if is_refusal(&status) => {
                    blocked.insert(entity);
                    outcome.refused.push((event, status));
                }
                Err(status) => {
                    outcome.interrupted = Some(status);
                    return;
                }
            }
        }
    }

    async fn deliver(&self, job: &Job, events: &[Pending]) -> Result<(), Status> {
        let account_id = job.account_id().to_string();
        let event = |pending: &Pending| proto::api::Event {
            id: pending.id.to_string(),
            account_id: account_id.clone(),
            r#type: pending.r#type.clone(),
            entity_type: pending.entity_type.clone(),
            entity_id: pending.entity_id.to_string(),
            sequence: pending.sequence,
            occurred_at: Some(timestamp(pending.occurred_at)),
            data: pending.data.clone(),
            depth: depth(pending),
        };
        let mut request = Request::new(DeliverEventsRequest { events: events.iter().map(event).collect() });
        request.set_timeout(TIMEOUT);
        let depth = events.first().map_or(0, depth);
        let minter = self.tokens.to(self.peer.name()).at_depth(depth);
        let token = minter.mint_mesh(job.account(), self.service, job.now());
        let token = MetadataValue::try_from(token)
            .map_err(|_| Status::internal("the context token is not a valid header value"))?;
        request.metadata_mut().insert(token::HEADER, token);
        let mut client = EventListenerServiceClient::new(self.peer.channel());
        client.deliver_events(request).await.map(|_| ())
    }

    /// Deletes delivered events and records refusals in one transaction. After a crash before the commit, the batch is
    /// delivered again.
    async fn settle(&self, job: &Job, outcome: &Outcome) -> Result<(), Error> {
        if outcome.delivered.is_empty() && outcome.refused.is_empty() {
            return Ok(());
        }
        job.write(outcome, settle).await?;
        let count = |label: &'static str, count: usize| {
            let listener = outcome.listener.clone();
            metrics::counter!("events_total", "listener" => listener, "outcome" => label)
                .increment(u64::try_from(count).unwrap_or_default());
        };
        count("delivered", outcome.delivered.len());
        count("refused", outcome.refused.len());
        Ok(())
    }
}

fn depth(event: &Pending) -> u32 {
    u32::try_from(event.depth).unwrap_or_default()
}

async fn settle(tx: &mut Tx<'_>, outcome: &Outcome) -> Result<(), Error> {
    delete_delivered(tx, &outcome.listener, &outcome.delivered).await?;
    for (event, status) in &outcome.refused {
        defer(tx, &outcome.listener, event, status).await?;
    }
    Ok(())
}

/// Whether the listener itself refused the event. Other failures (the listener is unreachable, overloaded, too slow or
/// rejects the caller) are temporary and do not count against the event.
fn is_refusal(status: &Status) -> bool {
    // A failure of the transport has a source; a response of the listener has none.
    status.source().is_none()
        && matches!(
            status.code(),
            Code::InvalidArgument
                | Code::FailedPrecondition
                | Code::OutOfRange
                | Code::NotFound
                | Code::AlreadyExists
                | Code::Internal
                | Code::Unknown
                | Code::DataLoss
        )
}

async fn delete_delivered(tx: &mut Tx<'_>, listener: &str, events: &[Pending]) -> Result<(), Error> {
    let account = tx.account();
    sqlx::query(
        "delete from outbox where account_id = $1 and listener = $2
            and (entity_type, entity_id, sequence) in (select * from unnest($3::text[], $4::uuid[], $5::bigint[]))",
    )
    .bind(account)
    .bind(listener)
    .bind(events.iter().map(|event| event.entity_type.clone()).collect::<Vec<_>>())
    .bind(events.iter().map(|event| event.entity_id).collect::<Vec<_>>())
    .bind(events.iter().map(|event| event.sequence).collect::<Vec<_>>())
    .execute(tx.db())
    .await?;
    Ok(())
}

async fn defer(tx: &mut Tx<'_>, listener: &str, event: &Pending, status: &Status) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let attempts = event.attempts + 1;
    let dead = attempts >= MAX_ATTEMPTS;
    let wait = backoff(attempts.unsigned_abs(), INITIAL_BACKOFF, MAX_BACKOFF);
    if dead {
        tracing::error!(listener, event = %event.id, "event given up, now a dead letter");
    } else {
        tracing::warn!(listener, event = %event.id, attempts, code = ?status.code(), "event delivery deferred");
    }
    sqlx::query(
        "update outbox set attempts = $6, next_at = $7, dead_at = $8, last_error = $9
         where account_id = $1 and listener = $2 and entity_type = $3 and entity_id = $4 and sequence = $5",
    )
    .bind(account)
    .bind(listener)
    .bind(&event.entity_type)
    .bind(event.entity_id)
    .bind(event.sequence)
    .bind(attempts)
    .bind(now + wait)
    .bind(dead.then_some(now))
    .bind(explain(status))
    .execute(tx.db())
    .await?;
    Ok(())
}
