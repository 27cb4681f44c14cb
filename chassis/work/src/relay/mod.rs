//! Delivers events to their listeners: at least once, in order per entity, independently for each listener.
//!
//! The relay to a listener reads the log from the listener's position, sends what the listener wants in batches, and
//! moves the position ([`store`]). While a listener is unreachable, its position stays. An event that a listener refuses
//! becomes an exception and is retried; it holds up only the later events of its entity, which become exceptions too.
//! After the last attempt it is a dead letter, and the later events are delivered without it.
//!
//! The listener ignores positions that it has passed. So an exception is stored before an event after it is sent: if the
//! relay forgot it, the listener would take it for one that it has already.

mod outbox;
mod store;

use std::collections::HashSet;
use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use chassis_base::Error;
use chassis_base::time::timestamp;
use chassis_data::Listener;
use chassis_rpc::peer::Peer;
use chassis_rpc::token::{self, Tokens};
use proto::api::DeliverEventsRequest;
use proto::api::event_listener_service_client::EventListenerServiceClient;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Status};

use crate::worker::{Due, Job, Next, Worker};
use store::{Found, Fresh, Outcome, Undelivered};

/// The maximum data bytes of one call: a message must stay below the size limit of a listener.
const BATCH_BYTES: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(10);
/// The number of refusals after which an event is dead, in about half an hour.
pub const MAX_ATTEMPTS: i32 = 12;

/// Where the work of all relays is: positions to move, and exceptions and events of the release before.
const WORK: &str = "(select account_id, name, since as due_at from reader where target > position
     union all select account_id, reader, next_at from reader_exception where dead_at is null
     union all select account_id, listener, next_at from outbox where dead_at is null) work";

/// The worker that serves one listener.
pub fn worker(service: &'static str, listener: Listener, peer: Peer, tokens: Tokens) -> Worker {
    let due = Due::new(WORK, "work.name = $argument", "work.due_at").argument(peer.name());
    let name = format!("relay:{}", peer.name());
    let relay = Arc::new(Relay { service, listener, peer, tokens });
    Worker::new(name, due, move |job| {
        let relay = Arc::clone(&relay);
        async move { relay.run(&job).await }
    })
}

struct Relay {
    service: &'static str,
    listener: Listener,
    peer: Peer,
    tokens: Tokens,
}

/// What follows when an event is refused.
#[derive(Clone, Copy)]
enum Refusal {
    /// Nothing: the refusal has to be stored before the listener gets a greater position.
    Stop,
    /// The events of other entities.
    Skip,
}

impl Relay {
    /// Exceptions go first, and events of the release before go before them. One round trip finds out what there is.
    async fn run(&self, job: &Job) -> Result<Next, Error> {
        let Found { has_old, has_exceptions, fresh } = store::read(job, &self.listener).await?;
        if has_old {
            let old = outbox::read(job, &self.listener).await?;
            if !old.is_empty() {
                let outcome = self.deliver_all(job, cut(old), Refusal::Skip).await;
                outbox::settle(job, &outcome).await?;
                return self.next(outcome, true);
            }
        }
        if has_exceptions {
            let due = store::exceptions(job, &self.listener).await?;
            if !due.is_empty() {
                let outcome = self.deliver_all(job, cut(due), Refusal::Skip).await;
                store::settle(job, &outcome).await?;
                return self.next(outcome, true);
            }
        }
        match fresh {
            Some(fresh) => self.read_on(job, fresh).await,
            None => Ok(Next::WhenDue),
        }
    }

    /// Delivers the next events of the log.
    async fn read_on(&self, job: &Job, Fresh { events, end, is_last }: Fresh) -> Result<Next, Error> {
        let count = events.len();
        let events = cut(events);
        // The position to move to when all is delivered.
        let (end, is_last) = match events.last() {
            Some(last) if events.len() < count => (last.position, false),
            _ => (end, is_last),
        };
        let (held, events): (Vec<_>, Vec<_>) =
            events.into_iter().partition(|event| event.held_until.is_some());
        if !held.is_empty() {
            store::hold(job, &self.listener, held).await?;
        }
        let mut outcome = self.deliver_all(job, events, Refusal::Stop).await;
        let is_whole = outcome.refused.is_empty() && outcome.interrupted.is_none();
        let refused = outcome.refused.first().map(|(event, _)| event.position);
        let delivered = outcome.delivered.last().map(|event| event.position);
        outcome.position = if is_whole { Some(end) } else { refused.or(delivered) };
        store::settle(job, &outcome).await?;
        self.next(outcome, !(is_whole && is_last))
    }

    fn next(&self, outcome: Outcome, more: bool) -> Result<Next, Error> {
        let count = |label: &'static str, count: usize| {
            metrics::counter!("events_total", "listener" => self.listener.name.clone(), "outcome" => label)
                .increment(u64::try_from(count).unwrap_or_default());
        };
        count("delivered", outcome.delivered.len());
        count("refused", outcome.refused.len());
        match outcome.interrupted {
            Some(status) => Err(Error::Peer(Box::new(status))),
            None if more => Ok(Next::Now),
            None => Ok(Next::WhenDue),
        }
    }

    /// Delivers the events in one call. If the listener refuses it, delivers each separately.
    async fn deliver_all(&self, job: &Job, events: Vec<Undelivered>, refusal: Refusal) -> Outcome {
        let mut outcome = Outcome { listener: self.listener.name.clone(), ..Outcome::default() };
        if events.len() > 1 {
            match self.deliver(job, &events).await {
                Ok(()) => outcome.delivered = events,
                Err(status) if is_refusal(&status) => {
                    self.deliver_each(job, events, refusal, &mut outcome).await;
                }
                Err(status) => outcome.interrupted = Some(status),
            }
        } else {
            self.deliver_each(job, events, refusal, &mut outcome).await;
        }
        outcome
    }

    async fn deliver_each(
        &self,
        job: &Job,
        events: Vec<Undelivered>,
        refusal: Refusal,
        outcome: &mut Outcome,
    ) {
        let mut blocked = HashSet::new();
        for event in events {
            let entity = (event.kind.clone(), event.record_id.clone());
            if blocked.contains(&entity) {
                continue;
            }
            match self.deliver(job, std::slice::from_ref(&event)).await {
                Ok(()) => outcome.delivered.push(event),
                Err(status) if is_refusal(&status) => {
                    outcome.refused.push((event, status));
                    if matches!(refusal, Refusal::Stop) {
                        return;
                    }
                    blocked.insert(entity);
                }
                Err(status) => {
                    outcome.interrupted = Some(status);
                    return;
                }
            }
        }
    }

    async fn deliver(&self, job: &Job, events: &[Undelivered]) -> Result<(), Status> {
        let account_id = job.account_id().to_string();
        let event = |event: &Undelivered| proto::api::Event {
            id: event.id.to_string(),
            account_id: account_id.clone(),
            r#type: event.event.clone(),
            entity_type: event.kind.clone(),
            entity_id: event.record_id.clone(),
            sequence: event.sequence,
            occurred_at: Some(timestamp(event.at)),
            data: event.data.clone(),
            depth: event.depth.unsigned_abs(),
            position: event.position,
            retried: event.is_retried,
        };
        let mut request = Request::new(DeliverEventsRequest { events: events.iter().map(event).collect() });
        request.set_timeout(TIMEOUT);
        let depth = events.first().map_or(0, |event| event.depth.unsigned_abs());
        let minter = self.tokens.to(self.peer.name()).at_depth(depth);
        let token = minter.mint_mesh(job.account(), self.service, job.now());
        let token = MetadataValue::try_from(token)
            .map_err(|_| Status::internal("the context token is not a valid header value"))?;
        request.metadata_mut().insert(token::HEADER, token);
        let mut client = EventListenerServiceClient::new(self.peer.channel());
        client.deliver_events(request).await.map(|_| ())
    }
}

/// The first events that fit into one call. The events that a listener emits derive their depth from the call, so a call
/// has events of one depth only.
fn cut(mut events: Vec<Undelivered>) -> Vec<Undelivered> {
    let (mut bytes, depth) = (0, events.first().map_or(0, |event| event.depth));
    let fitting = events.iter().take_while(|event| {
        bytes += event.data.len();
        bytes <= BATCH_BYTES && event.depth == depth
    });
    let fitting = fitting.count().max(1);
    events.truncate(fitting);
    events
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
