//! What deals do when a client accepts a quote. The events have the form that billing gives them.

use chrono::TimeDelta;
use proto::api::{DeliverEventsRequest, Event};
use serde_json::{Value, json};
use tonic::Code;
use uuid::Uuid;

use crate::support::{User, World};

fn event(user: &User, kind: &str, data: &Value) -> Event {
    Event {
        id: Uuid::new_v4().to_string(),
        account_id: user.account.id.to_string(),
        r#type: kind.to_owned(),
        entity_type: "quote".to_owned(),
        entity_id: Uuid::new_v4().to_string(),
        sequence: 1,
        occurred_at: None,
        data: data.to_string(),
        ..Event::default()
    }
}

fn accepted(user: &User, quote: Uuid, client: &str) -> Event {
    let data = json!({"id": quote, "number": "QUO-2026-00001", "client_id": client, "total_incl_vat": 121.0});
    event(user, "quote.accepted", &data)
}

async fn deliver(user: &User, events: Vec<Event>) -> Result<(), Code> {
    let request = user.request(DeliverEventsRequest { events });
    user.listener().deliver_events(request).await.map(drop).map_err(|status| status.code())
}

#[tokio::test]
async fn the_only_open_deal_of_the_client_records_an_accepted_quote_once() {
    let world = World::new().await;
    let user = world.user().await;
    let (mill, farm) = (user.client("Mill").await, user.client("Farm").await);
    let deal = user.titled_deal(&mill, "Ovens").await;
    user.deal(json!({"title": "Old", "client_id": mill, "status": "won"})).await;
    user.titled_deal(&farm, "Barn").await;
    user.take_events(&world).await;
    world.clock.advance(TimeDelta::minutes(1));

    let quote = Uuid::new_v4();
    let events = vec![accepted(&user, quote, &mill), event(&user, "quote.created", &json!({"other": 1}))];
    for _ in 0..2 {
        deliver(&user, events.clone()).await.unwrap();
    }
    deliver(&user, vec![accepted(&user, quote, &mill)]).await.unwrap();
    let events = user.take_events(&world).await;
    assert_eq!(events.len(), 1, "{events:?}");
    let (name, data) = &events[0];
    assert_eq!((name.as_str(), &data["id"]), ("deal.quote_accepted", &deal["id"]));
    let expected = json!({"id": quote, "number": "QUO-2026-00001", "total_incl_vat": 121.0});
    assert_eq!(data["quote"], expected);

    let deal = user.get(&deal).await;
    let history = deal["meta"]["history"].as_array().unwrap();
    assert_eq!(history.len(), 2);
    assert_eq!((&history[1]["accepted_quote_id"], &history[1]["status"]), (&json!(quote), &json!("open")));
    assert_eq!(deal["meta"]["updated_at"], "2026-11-15T11:01:00.123Z");
    user.act(&deal, "win", json!({})).await.expect(200);
    assert_eq!(user.take_event_names(&world).await, ["deal.won"]);
}

#[tokio::test]
async fn several_quotes_that_are_delivered_together_are_one_change_of_the_deal() {
    let world = World::new().await;
    let user = world.user().await;
    let mill = user.client("Mill").await;
    let deal = user.titled_deal(&mill, "Ovens").await;
    let quotes = [Uuid::new_v4(), Uuid::new_v4()];
    deliver(&user, quotes.iter().map(|quote| accepted(&user, *quote, &mill)).collect()).await.unwrap();
    let deal = user.get(&deal).await;
    assert_eq!(deal["meta"]["version"], 2);
    user.act(&deal, "win", json!({})).await.expect(200);
    let deal = user.get(&deal).await;
    assert_eq!(deal["meta"]["version"], 3);
    let history = deal["meta"]["history"].as_array().unwrap();
    let entries: Vec<_> = history.iter().map(|step| &step["accepted_quote_id"]).collect();
    assert_eq!(entries, [&Value::Null, &json!(quotes[0]), &json!(quotes[1]), &Value::Null]);
    assert_eq!(history[3]["status"], "won");
}

#[tokio::test]
async fn a_client_with_no_open_deal_or_several_leaves_the_quote_without_a_deal() {
    let world = World::new().await;
    let user = world.user().await;
    let mill = user.client("Mill").await;
    let (none, several) = (Uuid::new_v4(), Uuid::new_v4());
    deliver(&user, vec![accepted(&user, none, &mill)]).await.unwrap();
    let first = user.titled_deal(&mill, "Ovens").await;
    user.titled_deal(&mill, "Mills").await;
    user.take_events(&world).await;
    deliver(&user, vec![accepted(&user, several, &mill)]).await.unwrap();
    user.act(&first, "lose", json!({})).await.expect(200);
    assert_eq!(user.take_event_names(&world).await, ["deal.lost"]);
    deliver(&user, vec![accepted(&user, none, &mill), accepted(&user, several, &mill)]).await.unwrap();
    assert_eq!(
        user.take_event_names(&world).await,
        [""; 0],
        "a quote that was delivered before has no effect later"
    );
    deliver(&user, vec![accepted(&user, Uuid::new_v4(), &mill)]).await.unwrap();
    assert_eq!(user.take_event_names(&world).await, ["deal.quote_accepted"]);
}

#[tokio::test]
async fn malformed_events_are_refused_and_a_quote_without_a_client_is_ignored() {
    let world = World::new().await;
    let (user, other) = (world.user().await, world.user().await);
    let mill = user.client("Mill").await;
    user.titled_deal(&mill, "Ovens").await;
    user.take_events(&world).await;
    let good = accepted(&user, Uuid::new_v4(), &mill);
    let strange = Event { account_id: other.account.id.to_string(), ..good.clone() };
    let nonsense = Event { data: json!({"id": 5}).to_string(), ..good.clone() };
    for refused in [strange, nonsense] {
        assert_eq!(deliver(&user, vec![good.clone(), refused]).await, Err(Code::InvalidArgument));
    }
    let nobody = event(&user, "quote.accepted", &json!({"id": Uuid::new_v4(), "client_id": null}));
    deliver(&user, vec![nobody]).await.unwrap();
    assert_eq!(user.take_event_names(&world).await, [""; 0], "a refused batch has no effect");
}
