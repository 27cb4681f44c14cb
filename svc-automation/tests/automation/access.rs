//! Who may read which events, in the list and through an endpoint.

use chassis_testing::{TestCaller, eventually};
use proto::api::{DeliverEventsRequest, Event};
use proto::automation::event_service_client::EventServiceClient;
use proto::automation::{
    CreateWebhookEndpointRequest, ListEventsRequest, ListWebhookDeliveriesRequest, SetKeyScopesRequest,
    UpdateWebhookEndpointRequest, WebhookEndpointInput,
};
use serde_json::json;
use uuid::Uuid;

use crate::support::{Receiver, World, problem};

impl World {
    fn key(&self, scopes: &[&str]) -> TestCaller {
        TestCaller { scopes: scopes.iter().map(ToString::to_string).collect(), ..self.caller.clone() }
    }

    /// Delivers an event of another service.
    async fn deliver_one(&self, kind: &str, entity_type: &str) {
        let event = Event {
            id: Uuid::new_v4().to_string(),
            account_id: self.account.id.to_string(),
            r#type: kind.into(),
            entity_type: entity_type.into(),
            entity_id: Uuid::nil().to_string(),
            sequence: 1,
            occurred_at: Some(chassis_base::time::timestamp(chassis_testing::moment())),
            data: r#"{"key": "storage"}"#.into(),
            ..Event::default()
        };
        let request = self.caller.request(DeliverEventsRequest { events: vec![event] });
        self.listener().deliver_events(request).await.unwrap();
    }

    async fn listed(&self, scopes: &[&str]) -> Vec<String> {
        let request = self.key(scopes).request(ListEventsRequest::default());
        let answer = EventServiceClient::new(self.channel()).list_events(request).await.unwrap().into_inner();
        let mut kinds: Vec<String> = answer.data.into_iter().map(|event| event.r#type).collect();
        kinds.sort();
        kinds
    }

    async fn endpoint_with(&self, scopes: &[&str], url: &str) -> String {
        let endpoint = WebhookEndpointInput { url: url.to_owned(), ..WebhookEndpointInput::default() };
        let request = self.key(scopes).request(CreateWebhookEndpointRequest { endpoint: Some(endpoint) });
        self.webhooks().create_webhook_endpoint(request).await.unwrap().into_inner().data.unwrap().id
    }

    /// The types and errors of an endpoint's deliveries, as far as a key may see them.
    async fn deliveries_of(&self, endpoint: &str, scopes: &[&str]) -> Vec<(String, String)> {
        let request = ListWebhookDeliveriesRequest { id: endpoint.to_owned(), ..Default::default() };
        let answer = self.webhooks().list_webhook_deliveries(self.key(scopes).request(request)).await;
        let data = answer.unwrap().into_inner().data;
        data.into_iter().map(|delivery| (delivery.r#type, delivery.error)).collect()
    }

    async fn narrow(&self, scopes: &[&str]) {
        let scopes = scopes.iter().map(ToString::to_string).collect();
        let request = self.caller.request(SetKeyScopesRequest { key: "test".into(), scopes });
        self.webhooks().set_key_scopes(request).await.unwrap();
    }
}

#[tokio::test]
async fn a_key_lists_only_the_events_that_its_scopes_cover() {
    let world = World::idle().await;
    world.deliver_one("ticket.created", "ticket").await;
    world.deliver_one("customer.created", "client").await;
    world.deliver_one("file.stored", "file").await;
    world.fire("order.shipped", &json!({})).await;
    assert_eq!(world.listed(&["webhooks.write", "tickets.read"]).await, ["order.shipped", "ticket.created"]);
    assert_eq!(world.listed(&["webhooks.write"]).await, ["order.shipped"], "its own");
    world.execute("update automation.event set actor = 'another' where actor <> ''").await;
    assert!(world.listed(&["webhooks.write"]).await.is_empty(), "nothing of others");
    assert_eq!(world.listed(&["webhooks.write", "automation.read"]).await, ["order.shipped"]);
    let all = ["webhooks.write", "automation.read", "tickets.read", "relations.read", "files.read"];
    assert_eq!(world.listed(&all).await, ["customer.created", "order.shipped", "ticket.created"]);
    assert_eq!(world.listed(&["mesh"]).await, ["customer.created", "order.shipped", "ticket.created"]);
}

#[tokio::test]
async fn an_endpoint_gets_what_its_key_may_read_and_nothing_else() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    let endpoint = world.endpoint_with(&["webhooks.write", "tickets.read"], &receiver.url).await;
    world.deliver_one("customer.created", "client").await;
    world.deliver_one("file.stored", "file").await;
    world.deliver_one("ticket.created", "ticket").await;
    receiver.until_got(1).await;
    let delivered = |kind: &str| (kind.to_owned(), String::new());
    assert_eq!(world.deliveries_of(&endpoint, &["mesh"]).await, [delivered("ticket.created")]);
    assert!(
        world.deliveries_of(&endpoint, &["webhooks.write"]).await.is_empty(),
        "a delivery is read as its event"
    );
    assert_eq!(
        world.deliveries_of(&endpoint, &["webhooks.write", "tickets.read"]).await,
        [delivered("ticket.created")]
    );
    assert!(receiver.got()[0].body.contains("ticket.created"));
}

#[tokio::test]
async fn an_endpoint_gets_nothing_that_its_key_may_not_read_any_more() {
    let (mut world, receiver) = (World::idle().await, Receiver::start().await);
    let scopes = ["webhooks.write", "tickets.read", "deals.read"];
    let endpoint = world.endpoint_with(&scopes, &receiver.url).await;
    world.deliver_one("ticket.created", "ticket").await;
    world.deliver_one("deal.created", "deal").await;
    world.narrow(&["webhooks.write", "deals.read"]).await;
    world.service = Some(world.another().await);
    receiver.until_got(1).await;
    eventually("the other has failed", async || {
        let given_up = "select count(*) from automation.webhook_delivery where status = 'failed'";
        world.count(given_up).await == 1
    })
    .await;
    assert!(receiver.got()[0].body.contains("deal.created"));
    world.narrow(&[]).await;
    world.deliver_one("deal.created", "deal").await;
    world.fire("order.shipped", &json!({})).await;
    let deliveries = "select count(*) from automation.webhook_delivery";
    assert_eq!(
        world.count(deliveries).await,
        2,
        "nothing is queued for the endpoint of a key that was revoked"
    );
    assert!(!endpoint.is_empty());
}

#[tokio::test]
async fn a_caller_who_changes_the_address_gets_no_more_than_they_may_read() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    let endpoint = world.endpoint_with(&["webhooks.write", "tickets.read"], "https://example.com").await;
    world.execute("update automation.webhook_endpoint set key_id = 'another'").await;
    let given = WebhookEndpointInput { url: receiver.url.clone(), ..WebhookEndpointInput::default() };
    let request =
        UpdateWebhookEndpointRequest { id: endpoint.clone(), endpoint: Some(given), update_mask: None };
    world.webhooks().update_webhook_endpoint(world.key(&["webhooks.write"]).request(request)).await.unwrap();
    world.deliver_one("ticket.created", "ticket").await;
    world.fire("order.shipped", &json!({})).await;
    receiver.until_got(1).await;
    assert_eq!(
        world.deliveries_of(&endpoint, &["mesh"]).await,
        [("order.shipped".to_owned(), String::new())]
    );
}

#[tokio::test]
async fn a_repeated_create_says_that_the_secret_was_shown() {
    let world = World::idle().await;
    let create = || {
        let endpoint = WebhookEndpointInput { url: "https://example.com".into(), ..Default::default() };
        world.caller.keyed("k", CreateWebhookEndpointRequest { endpoint: Some(endpoint) })
    };
    let made = world.webhooks().create_webhook_endpoint(create()).await.unwrap().into_inner().data.unwrap();
    let repeated = world.webhooks().create_webhook_endpoint(create()).await.unwrap_err();
    assert_eq!(problem(&repeated), "secret_already_shown");
    assert!(repeated.details().windows(36).any(|part| part == made.id.as_bytes()), "it names the endpoint");
    assert_eq!(world.count("select count(*) from automation.webhook_endpoint").await, 1);
    let bare = made.secret.trim_start_matches("whsec_");
    let stored: Vec<Vec<u8>> = sqlx::query_scalar("select response from automation.idempotency")
        .fetch_all(&mut world.database.connect().await)
        .await
        .unwrap();
    assert!(!stored.iter().any(|one| String::from_utf8_lossy(one).contains(bare)), "it is not stored");
}

#[tokio::test]
async fn an_account_has_a_bounded_number_of_endpoints() {
    let world = World::idle().await;
    let create = || {
        let endpoint = WebhookEndpointInput { url: "https://example.com".into(), ..Default::default() };
        world.caller.request(CreateWebhookEndpointRequest { endpoint: Some(endpoint) })
    };
    for _ in 0..50 {
        world.webhooks().create_webhook_endpoint(create()).await.unwrap();
    }
    let refused = world.webhooks().create_webhook_endpoint(create()).await.unwrap_err();
    assert_eq!(problem(&refused), "limit_reached");
}
