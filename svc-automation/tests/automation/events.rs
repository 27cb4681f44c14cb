//! Events and triggers: each is stored once and starts the flows that it triggers.

use chassis_testing::faults;
use proto::api::{DeliverEventsRequest, Event};
use proto::automation::event_service_client::EventServiceClient;
use proto::automation::trigger_service_client::TriggerServiceClient;
use proto::automation::{ListEventsRequest, TriggerWebhookRequest, WebhookTriggerInput};
use serde_json::json;
use tonic::Status;
use uuid::Uuid;

use crate::support::{MAKE_CLIENT, World, fault};

async fn world() -> World {
    World::idle().await
}

impl World {
    async fn deliver(&self, events: Vec<Event>) -> Result<(), Status> {
        let request = self.caller.request(DeliverEventsRequest { events });
        self.listener().deliver_events(request).await.map(|_| ())
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
            occurred_at: Some(chassis_base::time::timestamp(chassis_testing::moment())),
            data: "{}".into(),
            ..Event::default()
        }
    }
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
async fn concurrent_deliveries_of_the_same_batch_store_it_once() {
    let world = world().await;
    let batch: Vec<Event> = (1..=50).map(|number| world.event(number)).collect();
    let backwards: Vec<Event> = batch.iter().rev().cloned().collect();
    let mut deliveries = tokio::task::JoinSet::new();
    for turn in 0..20 {
        let events = if turn % 2 == 0 { batch.clone() } else { backwards.clone() };
        let request = world.caller.request(DeliverEventsRequest { events });
        let mut client = world.listener();
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
    let foreign = Event { account_id: chassis_testing::account().id.to_string(), ..world.event(2) };
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
async fn a_trigger_is_stored_with_its_data_and_matches_nothing_without_a_flow() {
    let world = world().await;
    let mut client = TriggerServiceClient::new(world.channel());
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
    let mut client = TriggerServiceClient::new(world.channel());
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

const ON_CHANGE: &str = "
name: On change
trigger: {custom: thing.changed}
steps:
  - {id: pause, wait: {for: 1d}}
";

#[tokio::test]
async fn every_new_event_starts_its_flows_once_and_in_order() {
    let world = world().await;
    world.apply(ON_CHANGE).await;
    world.deliver((1..=3).map(|number| world.event(number)).collect()).await.unwrap();
    world.deliver((2..=4).map(|number| world.event(number)).collect()).await.unwrap();
    let events: Vec<Uuid> = sqlx::query_scalar("select event_id from automation.run order by id")
        .fetch_all(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(events, (1..=4).map(Uuid::from_u128).collect::<Vec<_>>());
}

#[tokio::test]
async fn both_trigger_routes_return_the_runs_that_they_started() {
    let world = world().await;
    let flow = world.apply(MAKE_CLIENT).await;
    let fired = world.fire("make.client", &json!({"name": "A"})).await;
    assert_eq!((fired.event.as_str(), fired.matched), ("make.client", 1));
    assert_eq!((fired.runs[0].flow_id.as_str(), fired.runs[0].status.as_str()), (flow.id.as_str(), "queued"));
    let trigger =
        WebhookTriggerInput { event: "make.client".into(), entity_id: Some(7), ..Default::default() };
    let request = world.caller.request(TriggerWebhookRequest { trigger: Some(trigger) });
    let answer = world.triggers().trigger_webhook(request).await.unwrap().into_inner().data.unwrap();
    assert_eq!((answer.matched, answer.runs[0].flow_guid.as_str()), (1, flow.id.as_str()));
    let run = world.run(&answer.runs[0].run_guid).await;
    assert_eq!((run.status.as_str(), run.meta.unwrap().entity_id.as_str()), ("queued", "7"));
}

#[tokio::test]
async fn an_event_with_two_names_is_one_and_is_returned_as_it_was_sent() {
    let world = world().await;
    world.apply("{name: A, trigger: {event: quote.fase_changed}, steps: [{id: a, wait: {for: 1d}}]}").await;
    for name in ["quote.fase_changed", "quote.phase_changed"] {
        let fired = world.fire(name, &json!({})).await;
        assert_eq!((fired.event.as_str(), fired.matched), (name, 1));
    }
}

#[tokio::test]
async fn the_events_of_the_last_month_are_listed() {
    let world = world().await;
    world.fire("a.b", &json!({"n": 1})).await;
    world.clock.advance(chrono::TimeDelta::days(20));
    world.fire("a.c", &json!({"n": 2})).await;
    let list = async |request: ListEventsRequest| {
        let mut client = EventServiceClient::new(world.channel());
        let answer = client.list_events(world.caller.request(request)).await.unwrap().into_inner();
        answer.data.into_iter().map(|event| event.r#type).collect::<Vec<_>>()
    };
    assert_eq!(list(ListEventsRequest::default()).await, ["a.c", "a.b"]);
    let only = ListEventsRequest { r#type: "a.b".into(), ..ListEventsRequest::default() };
    assert_eq!(list(only).await, ["a.b"]);
    world.clock.advance(chrono::TimeDelta::days(11));
    assert_eq!(list(ListEventsRequest::default()).await, ["a.c"]);
}
