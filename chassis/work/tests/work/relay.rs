//! The delivery of events over real gRPC: none is lost and the order is kept, whatever the listener does.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use chassis_base::{Account, Clock, Error};
use chassis_data::Tx;
use chassis_testing::bare::{Bare, database, emit};
use chassis_testing::{TestDatabase, eventually};
use chassis_work::dead_letters;
use chrono::{DateTime, TimeDelta, Utc};
use proto::api::event_listener_service_server::{EventListenerService, EventListenerServiceServer};
use proto::api::{DeliverEventsRequest, DeliverEventsResponse, Event};
use tokio::net::TcpListener;
use tonic::{Request, Response, Status};
use uuid::Uuid;

/// A listener that stores each event id once.
#[derive(Clone, Default)]
struct Recorder {
    received: Arc<Mutex<Vec<Event>>>,
    calls: Arc<AtomicU32>,
    duplicates: Arc<AtomicU32>,
    /// Fails two of three calls, one of them after it has stored the events.
    is_moody: bool,
}

#[tonic::async_trait]
impl EventListenerService for Recorder {
    async fn deliver_events(
        &self,
        request: Request<DeliverEventsRequest>,
    ) -> Result<Response<DeliverEventsResponse>, Status> {
        assert!(request.metadata().contains_key(chassis_rpc::token::HEADER));
        let mood = self.calls.fetch_add(1, Ordering::SeqCst) % 3;
        let events = request.into_inner().events;
        assert!((1..=100).contains(&events.len()));
        assert!(events.iter().all(|event| event.depth == events[0].depth), "what follows has one depth");
        if self.is_moody && mood == 0 {
            return Err(Status::unavailable("not now"));
        }
        if events.iter().any(|event| event.data.contains("poison")) {
            return Err(Status::invalid_argument("what is this?"));
        }
        let mut received = self.received.lock().unwrap();
        for event in events {
            if received.iter().any(|stored| stored.id == event.id) {
                self.duplicates.fetch_add(1, Ordering::SeqCst);
            } else {
                received.push(event);
            }
        }
        if self.is_moody && mood == 1 {
            return Err(Status::unavailable("the answer was lost"));
        }
        Ok(Response::new(DeliverEventsResponse {}))
    }
}

impl Recorder {
    fn count(&self) -> usize {
        self.received.lock().unwrap().len()
    }

    /// Serves in a separate runtime, so that the listener can be killed with all its connections.
    async fn listen(&self, address: &str) -> (SocketAddr, Serving) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (recorder, address) = (self.clone(), address.to_owned());
        let (sender, bound) = tokio::sync::oneshot::channel();
        runtime.spawn(async move {
            // The address of a listener that was just killed may still be in use.
            let listener = loop {
                match TcpListener::bind(&address).await {
                    Ok(listener) => break listener,
                    Err(_) => tokio::task::yield_now().await,
                }
            };
            sender.send(listener.local_addr().unwrap()).unwrap();
            let incoming = tonic::transport::server::TcpIncoming::from(listener);
            let server =
                tonic::transport::Server::builder().add_service(EventListenerServiceServer::new(recorder));
            server.serve_with_incoming(incoming).await.unwrap();
        });
        (bound.await.unwrap(), Serving(Some(runtime)))
    }

    fn assert_order_per_entity(&self) {
        let mut last: HashMap<String, i64> = HashMap::new();
        for event in self.received.lock().unwrap().iter() {
            let before = last.insert(event.entity_id.clone(), event.sequence);
            assert!(before < Some(event.sequence), "{} after {before:?}", event.sequence);
        }
    }
}

/// A running listener; dropping it kills the listener.
struct Serving(Option<tokio::runtime::Runtime>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.take().unwrap().shutdown_background();
    }
}

/// The number of events that the listener has not taken, dead letters included.
async fn waiting(database: &TestDatabase, listener: &str) -> i64 {
    sqlx::query_scalar(
        "select count(*) from bare.log entry
         left join bare.feed on feed.account_id = entry.account_id and feed.id = entry.id
         left join bare.reader on reader.account_id = entry.account_id and reader.name = $1
         where event is not null and (feed.position is null or feed.position > coalesce(reader.position, 0)
            or exists (select from bare.reader_exception refused
                where refused.account_id = entry.account_id and refused.reader = $1 and refused.id = entry.id))",
    )
    .bind(listener)
    .fetch_one(&mut database.connect().await)
    .await
    .unwrap()
}

fn later(clock: &Clock) {
    clock.advance(TimeDelta::seconds(1));
}

#[tokio::test]
async fn two_listeners_hear_everything_once_in_order_although_one_fails_and_dies() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let (calm, moody) = (Recorder::default(), Recorder { is_moody: true, ..Recorder::default() });
    let (calm_at, _calm_server) = calm.listen("127.0.0.1:0").await;
    let (moody_at, moody_server) = moody.listen("127.0.0.1:0").await;
    let listeners = format!("calm=http://{calm_at},moody=http://{moody_at}");
    let service =
        chassis_testing::start_working::<Bare>(database.url(), &clock, &["--listeners", &listeners]).await;
    let db = &service.runtime.db;

    let accounts = [chassis_testing::account(), chassis_testing::account(), chassis_testing::account()];
    let entities = [Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()];
    let mut moody_server = Some(moody_server);
    for version in 1..=20 {
        for account in &accounts {
            for entity in entities {
                // Each account has its own entities.
                let entity = Uuid::from_u128(entity.as_u128() ^ account.id.uuid().as_u128());
                emit(db, account, entity, version, "{}").await;
            }
        }
        if version == 10 {
            drop(moody_server.take());
            eventually("the calm one is not held up", async || calm.count() == 120).await;
        }
        later(&clock);
    }
    assert!(waiting(&database, "moody").await >= 100, "the dead one's events wait");
    let (_, _moody_server) = moody.listen(&moody_at.to_string()).await;
    eventually("all is delivered", async || {
        later(&clock);
        waiting(&database, "calm").await + waiting(&database, "moody").await == 0
    })
    .await;
    for recorder in [&calm, &moody] {
        assert_eq!(recorder.count(), 240);
        recorder.assert_order_per_entity();
    }
    assert!(moody.duplicates.load(Ordering::SeqCst) > 0, "delivered at least once, stored once");
    assert!(dead_letters::list(db).await.unwrap().is_empty(), "being away makes no dead letters");
}

#[tokio::test]
async fn a_refused_event_suffers_alone_becomes_a_dead_letter_and_can_be_retried() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let recorder = Recorder::default();
    let (address, _server) = recorder.listen("127.0.0.1:0").await;
    let listeners = format!("recorder=http://{address}");
    let service =
        chassis_testing::start_with::<Bare>(database.url(), &clock, &["--listeners", &listeners]).await;
    let (account, faulty, sound) = (chassis_testing::account(), Uuid::from_u128(1), Uuid::from_u128(2));
    let db = &service.runtime.db;
    emit(db, &account, faulty, 1, r#"{"n": 1}"#).await;
    emit(db, &account, faulty, 2, r#"{"n": "poison"}"#).await;
    emit(db, &account, faulty, 3, r#"{"n": 3}"#).await;
    emit(db, &account, sound, 1, "{}").await;
    // Nothing numbers the entries of a process that has no workers until they are a second old.
    clock.advance(TimeDelta::seconds(2));

    let working =
        chassis_testing::start_working::<Bare>(database.url(), &clock, &["--listeners", &listeners]).await;
    eventually("all but the faulty and the one behind it", async || {
        waiting(&database, "recorder").await == 2
    })
    .await;
    assert_eq!(recorder.count(), 2);
    let db = &working.runtime.db;
    emit(db, &account, sound, 2, "{}").await;
    eventually("others go on", async || recorder.count() == 3).await;
    assert!(dead_letters::list(db).await.unwrap().is_empty());

    eventually("the faulty one is given up", async || {
        // The clock moves only when the next attempt is in the future: leases expire when it jumps.
        let sql = "select max(next_at) from bare.reader_exception where dead_at is null";
        let next_at: Option<DateTime<Utc>> =
            sqlx::query_scalar(sql).fetch_one(&mut database.connect().await).await.unwrap();
        if let Some(wait) = next_at.map(|at| at - clock.now()).filter(|wait| *wait > TimeDelta::zero()) {
            clock.advance(wait);
        }
        dead_letters::list(db).await.unwrap().len() == 1
    })
    .await;
    let dead = dead_letters::list(db).await.unwrap().remove(0);
    assert_eq!((dead.kind.as_str(), dead.attempts), ("event", chassis_work::relay::MAX_ATTEMPTS));
    assert_eq!(dead.what, "thing.changed to recorder");
    assert_eq!(dead.last_error, "InvalidArgument: what is this?");
    eventually("the one behind it goes on", async || recorder.count() == 4).await;
    recorder.assert_order_per_entity();

    let mut connection = database.connect().await;
    sqlx::query("update bare.log set data = '{}'").execute(&mut connection).await.unwrap();
    assert_eq!(dead_letters::retry(db, Some(Uuid::nil())).await.unwrap(), 0, "no such letter");
    assert_eq!(dead_letters::retry(db, Some(dead.id)).await.unwrap(), 1);
    eventually("the retried one is delivered", async || waiting(&database, "recorder").await == 0).await;
    assert_eq!(recorder.count(), 5);
}

async fn emit_before_amendment(tx: &mut Tx<'_>, entity: &Uuid) -> Result<(), Error> {
    tx.expect_amendment();
    tx.unaudited("a test");
    tx.emit(&chassis_data::Event {
        kind: "thing.changed",
        entity_type: "thing",
        entity_id: *entity,
        version: 1,
        data: "{}".into(),
    });
    Ok(())
}

#[tokio::test]
async fn an_event_is_delivered_although_the_amendment_that_was_to_follow_never_came() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let recorder = Recorder::default();
    let (address, _server) = recorder.listen("127.0.0.1:0").await;
    let listeners = format!("recorder=http://{address}");
    let service =
        chassis_testing::start_working::<Bare>(database.url(), &clock, &["--listeners", &listeners]).await;
    let account = chassis_testing::account();
    service.runtime.db.record(&account, &Uuid::from_u128(1), emit_before_amendment).await.unwrap();
    // The clock stands still, so nobody looks for entries that were left without a position.
    eventually("it is delivered", async || recorder.count() == 1).await;
}

#[tokio::test]
async fn a_large_backlog_goes_out_in_bounded_batches() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let recorder = Recorder::default();
    let (address, _server) = recorder.listen("127.0.0.1:0").await;
    let listeners = format!("recorder=http://{address}");
    let mut connection = database.connect().await;
    // 64 KiB of data each: a hundred events exceed the message size limit of a listener.
    sqlx::query(
        "with entries as (
            insert into bare.log (account_id, id, at, actor, request_id, method, kind, record_id, version, message, event,
                sequence, data)
            select $1, lpad(to_hex(n), 32, '0')::uuid, $3, '', '', '', 'thing', '1', n, '', 'thing.changed', n, $2
            from generate_series(1, 150) n returning account_id, id, at
         )
         insert into bare.pending (account_id, id, at) select account_id, id, at from entries",
    )
    .bind(chassis_testing::account().id)
    .bind(format!("{{\"text\": \"{}\"}}", "x".repeat(65_500)))
    .bind(clock.now() - TimeDelta::seconds(2))
    .execute(&mut connection)
    .await
    .unwrap();
    let _service =
        chassis_testing::start_working::<Bare>(database.url(), &clock, &["--listeners", &listeners]).await;
    eventually("all is delivered", async || waiting(&database, "recorder").await == 0).await;
    assert_eq!(recorder.count(), 150);
    recorder.assert_order_per_entity();
    assert!(recorder.calls.load(Ordering::SeqCst) >= 10);
}

#[tokio::test]
async fn a_listener_is_told_how_many_events_led_to_each() {
    let (database, clock, recorder) = (database().await, chassis_testing::clock(), Recorder::default());
    let (address, _server) = recorder.listen("127.0.0.1:0").await;
    let flags = ["--listeners", &format!("recorder=http://{address}")];
    let emitting = chassis_testing::start_with::<Bare>(database.url(), &clock, &flags).await;
    let account = chassis_testing::account();
    for entity in 1..=3 {
        emit(&emitting.runtime.db, &account, Uuid::from_u128(entity), 1, "{}").await;
    }
    sqlx::query("update bare.log set depth = 2 where record_id = $1")
        .bind(Uuid::from_u128(2).to_string())
        .execute(&mut database.connect().await)
        .await
        .unwrap();
    clock.advance(TimeDelta::seconds(2));
    let _working = chassis_testing::start_working::<Bare>(database.url(), &clock, &flags).await;
    eventually("all are received", async || recorder.count() == 3).await;
    let depths: Vec<u32> = recorder.received.lock().unwrap().iter().map(|event| event.depth).collect();
    assert_eq!(depths, [0, 2, 0]);
}

/// Inserts an event as the release before stored it.
async fn insert_old(
    database: &TestDatabase,
    account: &Account,
    entity: Uuid,
    sequence: i64,
    at: DateTime<Utc>,
) {
    sqlx::query(
        "insert into bare.outbox
            (account_id, listener, entity_type, entity_id, sequence, id, type, data, occurred_at, next_at)
         values ($1, 'recorder', 'thing', $2, $3, $4, 'thing.changed', '{}', $5, $5)",
    )
    .bind(account.id)
    .bind(entity)
    .bind(sequence)
    .bind(Uuid::new_v4())
    .bind(at)
    .execute(&mut database.connect().await)
    .await
    .unwrap();
}

#[tokio::test]
async fn what_the_release_before_has_left_is_delivered_in_order_with_what_is_new() {
    let (database, clock, recorder) = (database().await, chassis_testing::clock(), Recorder::default());
    let (address, _server) = recorder.listen("127.0.0.1:0").await;
    let flags = ["--listeners", &format!("recorder=http://{address}")];
    let emitting = chassis_testing::start_with::<Bare>(database.url(), &clock, &flags).await;
    let account = chassis_testing::account();
    let entities = [Uuid::from_u128(1), Uuid::from_u128(2)];
    // Programs of both releases change the same records in turns.
    for version in 1..=9 {
        for (number, entity) in entities.iter().enumerate() {
            if (usize::try_from(version).unwrap() + number).is_multiple_of(2) {
                emit(&emitting.runtime.db, &account, *entity, version, "{}").await;
            } else {
                insert_old(&database, &account, *entity, version * 1000, clock.now()).await;
            }
        }
    }
    clock.advance(TimeDelta::seconds(2));
    let _working = chassis_testing::start_working::<Bare>(database.url(), &clock, &flags).await;
    eventually("all is delivered", async || recorder.count() == 18).await;
    recorder.assert_order_per_entity();
    eventually("nothing is left", async || {
        let left = "select count(*) from bare.outbox";
        let left: i64 = sqlx::query_scalar(left).fetch_one(&mut database.connect().await).await.unwrap();
        left + waiting(&database, "recorder").await == 0
    })
    .await;
    assert_eq!(recorder.duplicates.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_listener_of_few_events_skips_all_others() {
    let (database, clock, recorder) = (database().await, chassis_testing::clock(), Recorder::default());
    let (address, _server) = recorder.listen("127.0.0.1:0").await;
    let flags = ["--listeners", &format!("recorder=http://{address};thing.wanted")];
    let (account, at) = (chassis_testing::account(), clock.now() - TimeDelta::seconds(2));
    // More than one query looks through.
    sqlx::query(
        "with entries as (
            insert into bare.log (account_id, id, at, actor, request_id, method, kind, record_id, version, message, event,
                sequence, data)
            select $1, lpad(to_hex(n), 32, '0')::uuid, $2, '', '', '', 'thing', n, n, '',
                case when n % 6000 = 0 then 'thing.wanted' else 'thing.changed' end, n, '{}'
            from generate_series(1, 12500) n returning account_id, id, at
         )
         insert into bare.pending (account_id, id, at) select account_id, id, at from entries",
    )
    .bind(account.id)
    .bind(at)
    .execute(&mut database.connect().await)
    .await
    .unwrap();
    let _working = chassis_testing::start_working::<Bare>(database.url(), &clock, &flags).await;
    eventually("both are received", async || recorder.count() == 2).await;
    let positions: Vec<i64> = recorder.received.lock().unwrap().iter().map(|event| event.position).collect();
    assert_eq!(positions, [6000, 12_000]);
}
