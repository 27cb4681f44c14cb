//! Events and triggers through the real service on real Postgres.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use chassis::testing::{self, Started, TestCaller, TestDatabase};
use chassis::{Account, Service};
use prost::Message;
use proto::api::event_listener_service_client::EventListenerServiceClient;
use proto::api::{DeliverEventsRequest, Event};
use proto::automation::trigger_service_client::TriggerServiceClient;
use proto::automation::{TriggerWebhookRequest, WebhookTriggerInput};
use proto::google::rpc;
use svc_automation::Automation;
use tonic::{Code, Status};
use uuid::Uuid;

struct World {
    database: TestDatabase,
    service: Started,
    account: Account,
    caller: TestCaller,
}

async fn world() -> World {
    let database = TestDatabase::new(&[(Automation::NAME, Automation::migrations())]).await;
    let clock = testing::clock();
    let service = testing::start::<Automation>(database.url(), &clock).await;
    let account = testing::account();
    let caller = TestCaller::mesh(&account, &clock);
    World { database, service, account, caller }
}

impl World {
    async fn deliver(&self, events: Vec<Event>) -> Result<(), Status> {
        let mut client = EventListenerServiceClient::new(self.service.channel());
        client.deliver_events(self.caller.request(DeliverEventsRequest { events })).await.map(|_| ())
    }

    async fn stored(&self) -> Vec<(String, String, String, Option<i64>)> {
        sqlx::query_as("select type, entity_id, data, sequence from automation.event order by id")
            .fetch_all(&mut self.database.connect().await)
            .await
            .unwrap()
    }

    fn event(&self, number: i64) -> Event {
        Event {
            id: Uuid::from_u128(u128::try_from(number).unwrap()).to_string(),
            account_id: self.account.id.to_string(),
            r#type: "thing.changed".into(),
            entity_type: "thing".into(),
            entity_id: Uuid::nil().to_string(),
            sequence: number,
            occurred_at: Some(chassis::time::timestamp(testing::moment())),
            data: "{}".into(),
        }
    }
}

/// Where the faults are, and their codes.
fn faults(status: &Status) -> Vec<(String, String)> {
    assert_eq!(status.code(), Code::InvalidArgument);
    let details = rpc::Status::decode(status.details()).unwrap().details;
    let bad = rpc::BadRequest::decode(details[1].value.as_slice()).unwrap();
    bad.field_violations.into_iter().map(|fault| (fault.field, fault.reason)).collect()
}

fn fault(pointer: &str, code: &str) -> (String, String) {
    (pointer.to_owned(), code.to_owned())
}

#[tokio::test]
async fn an_event_that_is_delivered_twice_is_stored_once() {
    let world = world().await;
    world.deliver(vec![world.event(1), world.event(2)]).await.unwrap();
    world.deliver(vec![world.event(2), world.event(3), world.event(3)]).await.unwrap();
    let sequences: Vec<_> = world.stored().await.into_iter().map(|(.., sequence)| sequence).collect();
    assert_eq!(sequences, [Some(1), Some(2), Some(3)]);
}

#[tokio::test]
async fn many_deliveries_of_the_same_batch_at_once_store_it_once() {
    let world = world().await;
    let batch: Vec<Event> = (1..=50).map(|number| world.event(number)).collect();
    let backwards: Vec<Event> = batch.iter().rev().cloned().collect();
    let mut deliveries = tokio::task::JoinSet::new();
    for turn in 0..20 {
        let events = if turn % 2 == 0 { batch.clone() } else { backwards.clone() };
        let request = world.caller.request(DeliverEventsRequest { events });
        let mut client = EventListenerServiceClient::new(world.service.channel());
        deliveries.spawn(async move { client.deliver_events(request).await.map(|_| ()) });
    }
    for delivered in deliveries.join_all().await {
        delivered.unwrap();
    }
    assert_eq!(world.stored().await.len(), 50);
}

#[tokio::test]
async fn an_event_of_another_account_is_refused_with_its_batch() {
    let world = world().await;
    let foreign = Event { account_id: testing::account().id.to_string(), ..world.event(2) };
    let status = world.deliver(vec![world.event(1), foreign]).await.unwrap_err();
    assert_eq!(faults(&status), [fault("/events/1/account_id", "not_allowed")]);
    assert!(world.stored().await.is_empty());
}

#[tokio::test]
async fn every_fault_of_a_batch_is_reported() {
    let world = world().await;
    let bad = Event { id: "7".into(), occurred_at: None, data: "[]".into(), ..world.event(1) };
    let nameless = Event { r#type: String::new(), ..world.event(2) };
    let status = world.deliver(vec![bad, nameless]).await.unwrap_err();
    let mut found = faults(&status);
    found.sort();
    let expected = [
        fault("/events/0/data", "not_an_object"),
        fault("/events/0/id", "bad_format"),
        fault("/events/0/occurred_at", "not_a_time"),
        fault("/events/1/type", "required"),
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_trigger_is_stored_with_its_data_and_matches_nothing_yet() {
    let world = world().await;
    let mut client = TriggerServiceClient::new(world.service.channel());
    let input = WebhookTriggerInput {
        event: "order.shipped".into(),
        data: r#"{"order": 4711}"#.into(),
        entity_type: "order".into(),
        entity_id: Some(4711),
    };
    let request = TriggerWebhookRequest { trigger: Some(input) };
    let answer = client.trigger_webhook(world.caller.keyed("k", request.clone())).await.unwrap().into_inner();
    let data = answer.data.unwrap();
    assert_eq!((data.event.as_str(), data.matched, data.runs.len()), ("order.shipped", 0, 0));
    client.trigger_webhook(world.caller.keyed("k", request)).await.unwrap();
    let row = ("order.shipped".to_owned(), "4711".to_owned(), r#"{"order": 4711}"#.to_owned(), None);
    assert_eq!(world.stored().await, [row], "once, although it was sent twice");
}

#[tokio::test]
async fn a_trigger_without_a_proper_name_is_refused() {
    let world = world().await;
    let mut client = TriggerServiceClient::new(world.service.channel());
    let long = "a".repeat(129);
    let cases = [("", "required"), ("Order Shipped", "bad_format"), ("é", "bad_format"), (&long, "too_long")];
    for (event, code) in cases {
        let trigger = Some(WebhookTriggerInput { event: event.to_owned(), ..WebhookTriggerInput::default() });
        let request = world.caller.request(TriggerWebhookRequest { trigger });
        let status = client.trigger_webhook(request).await.unwrap_err();
        assert_eq!(faults(&status), [fault("/trigger/event", code)], "{event:?}");
    }
    let request = world.caller.request(TriggerWebhookRequest { trigger: None });
    assert_eq!(
        faults(&client.trigger_webhook(request).await.unwrap_err())[0],
        fault("/trigger/event", "required")
    );
    assert!(world.stored().await.is_empty());
}
