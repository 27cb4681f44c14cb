use chassis_base::time::timestamp;
use chassis_testing::eventually;
use chassis_testing::{expected_faults, faults};
use proto::api::event_listener_service_client::EventListenerServiceClient;
use proto::api::{DeliverEventsRequest, Event};
use serde_json::{Value, json};
use tonic::Status;
use uuid::Uuid;

use crate::support::{User, id, path_of};
use crate::world::World;

/// The data of the event of a file.
pub(crate) fn stored(world: &World, key: &str) -> Value {
    let (service, rest) = key.split_once('/').unwrap();
    let (area, key) = rest.split_once('/').unwrap();
    json!({
        "id": world.clock.id(), "name": "a/photo.jpg", "content_type": "image/jpeg", "size": 7,
        "service": service, "area": area, "key": key, "client_id": null, "created_at": "2026-11-15T11:00:00.123Z",
        "source": {"type": "ticket_message", "id": Uuid::from_u128(5)}, "version": null,
    })
}

fn event(world: &World, user: &User, data: &Value) -> Event {
    let (kind, id) = ("file.stored", data["id"].as_str().unwrap_or_default());
    Event { data: data.to_string(), ..about(world, user, kind, id) }
}

/// An event about this record.
pub(crate) fn about(world: &World, user: &User, kind: &str, id: &str) -> Event {
    Event {
        id: world.clock.id().to_string(),
        account_id: user.account.id.to_string(),
        r#type: kind.to_owned(),
        entity_type: kind.split('.').next().unwrap_or_default().to_owned(),
        entity_id: id.to_owned(),
        sequence: 1000,
        occurred_at: Some(timestamp(world.clock.now())),
        ..Event::default()
    }
}

pub(crate) async fn deliver(world: &World, user: &User, events: Vec<Event>) -> Result<(), Status> {
    let mut client = EventListenerServiceClient::new(world.work.channel());
    client.deliver_events(user.request(DeliverEventsRequest { events })).await.map(drop)
}

pub(crate) async fn deliver_one(world: &World, user: &User, data: &Value) {
    deliver(world, user, vec![event(world, user, data)]).await.unwrap();
}

#[tokio::test]
async fn a_file_of_another_service_is_listed_once_however_often_its_event_comes() {
    let world = World::start().await;
    let user = world.user().await;
    let file = stored(&world, "support/attachments/0a");
    deliver_one(&world, &user, &file).await;
    deliver_one(&world, &user, &file).await;
    deliver_one(&world, &user, &stored(&world, "support/attachments/0a")).await;
    let list = user.get("/v1/files").await;
    assert_eq!(list["meta"], json!({"total": 1}));
    let shown = &list["data"][0];
    assert_eq!(
        (&shown["id"], &shown["name"], &shown["extension"]),
        (&file["id"], &json!("photo.jpg"), &json!("jpg"))
    );
    let source = json!({
        "content_type": "image/jpeg", "size": 7, "source_type": "ticket_message", "source_id": Uuid::from_u128(5),
        "version": 1, "updated_at": "2026-11-15T11:00:00.123Z",
    });
    assert_eq!(shown["meta"], source);
    let gone = world.gateway.api_with("").get(&path_of(shown["url"].as_str().unwrap())).await.expect(404);
    assert_eq!(gone.at("/detail"), "This file has been deleted.", "its bytes are not there");
    user.delete(&format!("/v1/files/{}", id(shown))).await.expect(204);
    deliver_one(&world, &user, &file).await;
    assert_eq!(user.total("/v1/files").await, 0, "an event that comes late brings nothing back");
    deliver_one(&world, &user, &stored(&world, "support/attachments/0a")).await;
    assert_eq!(user.total("/v1/files").await, 1, "a file that was stored again is listed again");
}

#[tokio::test]
async fn only_the_newest_version_of_a_generated_file_stays() {
    let world = World::start().await;
    let user = world.user().await;
    let versions = |version: i64, key: &str| {
        let mut file = stored(&world, key);
        file["version"] = json!(version);
        file["name"] = json!(format!("v{version}.pdf"));
        file
    };
    for (version, key, expected) in [
        (2, "billing/d/2", "v2.pdf"),
        (1, "billing/d/1", "v2.pdf"),
        (3, "billing/d/3", "v3.pdf"),
        (2, "billing/d/2", "v3.pdf"),
    ] {
        deliver_one(&world, &user, &versions(version, key)).await;
        let list = user.get("/v1/files").await;
        assert_eq!((&list["meta"]["total"], &list["data"][0]["name"]), (&json!(1), &json!(expected)));
    }
}

#[tokio::test]
async fn malformed_events_are_refused_and_other_kinds_are_ignored() {
    let world = World::start().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let good = stored(&world, "support/attachments/0b");
    let mut foreign = event(&world, &stranger, &good);
    foreign.r#type = "other.event".into();
    let refused = deliver(&world, &user, vec![foreign]).await.unwrap_err();
    assert_eq!(faults(&refused), expected_faults(&[("/events/0/account_id", "not_allowed")]));
    for (key, pointer) in [("support/../billing/x", "/events/1/data/key"), ("//", "/events/1/data/key")] {
        let events = vec![event(&world, &user, &good), event(&world, &user, &stored(&world, key))];
        let refused = deliver(&world, &user, events).await.unwrap_err();
        assert_eq!(faults(&refused), expected_faults(&[(pointer, "bad_format")]));
    }
    let mut nonsense = event(&world, &user, &good);
    nonsense.data = "{}".into();
    let refused = deliver(&world, &user, vec![nonsense.clone()]).await.unwrap_err();
    assert_eq!(faults(&refused), expected_faults(&[("/events/0/data", "bad_format")]));
    nonsense.r#type = "other.event".into();
    deliver(&world, &user, vec![nonsense]).await.unwrap();
    assert_eq!(user.total("/v1/files").await, 0);
}

#[tokio::test]
async fn the_pdf_of_an_invoice_is_listed_and_rendered_again_after_it_was_deleted() {
    let mut world = World::start().with_billing().await;
    world.start_billing_worker().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let rows = json!([{"name": "Bread", "unit_price": 5}]);
    let body = json!({"title": "I", "client_id": client, "rows": rows, "generation_mode": "final"});
    let invoice = user.create("invoices", body).await;
    let listed = async || user.total("/v1/files").await;
    eventually("the PDF is listed", async || listed().await == 1).await;
    let file = user.get("/v1/files").await["data"][0].clone();
    let name = format!("{}.pdf", invoice["number"].as_str().unwrap());
    assert_eq!((&file["name"], &file["meta"]["source_id"]), (&json!(name), &invoice["id"]));
    let nobody = world.gateway.api_with("");
    let pdf = nobody.get(&path_of(file["url"].as_str().unwrap())).await.expect(200);
    let asked = path_of(invoice["pdf_url"].as_str().unwrap());
    assert_eq!(pdf.body, nobody.get(&asked).await.expect(200).body);
    user.delete(&format!("/v1/files/{}", id(&file))).await.expect(204);
    assert_eq!((listed().await, world.stored_files()), (json!(0), 0));
    assert_eq!(nobody.get(&asked).await.expect(200).body, pdf.body, "rendered again when it is requested");
    eventually("it is listed again", async || listed().await == 1).await;
    let again = user.get("/v1/files").await["data"][0].clone();
    assert_eq!(nobody.get(&path_of(again["url"].as_str().unwrap())).await.expect(200).body, pdf.body);
}
