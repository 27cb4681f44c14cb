//! Deliveries of events to webhook endpoints.

use chassis_rpc::call::AUTOMATION_DEPTH;
use chassis_testing::{eventually, faults};
use chrono::TimeDelta;
use proto::audit::ListAuditRequest;
use proto::audit::audit_service_client::AuditServiceClient;
use proto::automation::{
    AssignWebhookEndpointRequest, CreateWebhookEndpointRequest, DeleteWebhookEndpointRequest,
    GetWebhookEndpointRequest, ListWebhookDeliveriesRequest, RedeliverWebhookRequest,
    RotateSigningSecretRequest, RotateWebhookSecretRequest, TestWebhookEndpointRequest, TriggerInput,
    TriggerRequest, UpdateWebhookEndpointRequest, WebhookDelivery, WebhookEndpoint, WebhookEndpointInput,
    WebhookEndpointWithSecret,
};
use serde_json::{Value, json};

use crate::steps::is_signed;
use crate::support::{Receiver, World, fault};

impl World {
    async fn endpoint(&self, receiver: &Receiver, types: &[&str]) -> WebhookEndpointWithSecret {
        let request = CreateWebhookEndpointRequest { endpoint: Some(input(receiver, types)) };
        let request = self.caller.request(request);
        self.webhooks().create_webhook_endpoint(request).await.unwrap().into_inner().data.unwrap()
    }

    async fn found(&self, id: &str) -> WebhookEndpoint {
        let request = self.caller.request(GetWebhookEndpointRequest { id: id.to_owned() });
        self.webhooks().get_webhook_endpoint(request).await.unwrap().into_inner().data.unwrap()
    }

    /// The endpoint as its GET and the log show it, in this version.
    async fn found_in_version(&self, id: &str, version: i64) -> WebhookEndpoint {
        let found = self.found(id).await;
        let meta = found.meta.as_ref().unwrap();
        assert_eq!((meta.version, meta.updated_at), (version, found.updated_at));
        self.assert_logged("webhook_endpoint", id, version, &found).await;
        found
    }

    async fn change(&self, id: &str, endpoint: WebhookEndpointInput) {
        let request =
            UpdateWebhookEndpointRequest { id: id.to_owned(), endpoint: Some(endpoint), update_mask: None };
        self.webhooks().update_webhook_endpoint(self.caller.request(request)).await.unwrap();
    }

    async fn assign(&self, id: &str, key: &str) {
        let request = AssignWebhookEndpointRequest { id: id.to_owned(), key: key.to_owned(), scopes: vec![] };
        self.webhooks().assign_webhook_endpoint(self.caller.request(request)).await.unwrap();
    }

    async fn deliveries(&self, id: &str) -> Vec<WebhookDelivery> {
        let request = ListWebhookDeliveriesRequest { id: id.to_owned(), ..Default::default() };
        let request = self.caller.request(request);
        self.webhooks().list_webhook_deliveries(request).await.unwrap().into_inner().data
    }

    async fn until_attempts(&self, id: &str, attempts: i32) {
        eventually("an attempt was made", async || self.deliveries(id).await[0].attempts == attempts).await;
    }
}

fn input(receiver: &Receiver, types: &[&str]) -> WebhookEndpointInput {
    WebhookEndpointInput {
        url: receiver.url.clone(),
        types: types.iter().map(ToString::to_string).collect(),
        notify_email: "tech@example.com".into(),
        ..WebhookEndpointInput::default()
    }
}

#[tokio::test]
async fn an_endpoint_gets_what_it_subscribes_to_and_nothing_else() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    let endpoint = world.endpoint(&receiver, &["custom.order.shipped"]).await;
    world.fire("order.lost", &json!({})).await;
    world.fire("order.shipped", &json!({"order": 4711})).await;
    receiver.until_got(1).await;
    eventually("it is recorded", async || world.deliveries(&endpoint.id).await[0].status == "delivered")
        .await;
    let (got, deliveries) = (receiver.got(), world.deliveries(&endpoint.id).await);
    assert_eq!((got.len(), deliveries.len()), (1, 1));
    assert!(is_signed(&got[0], &endpoint.secret));
    assert_eq!(got[0].header("webhook-id"), deliveries[0].id);
    let body: Value = serde_json::from_str(&got[0].body).unwrap();
    assert_eq!((&body["type"], &body["data"]["order"]), (&json!("order.shipped"), &json!(4711)));
    assert_eq!(deliveries[0].response_status, Some(200));
}

#[tokio::test]
async fn an_endpoint_for_an_event_that_does_not_exist_is_refused_at_its_place() {
    let (world, receiver) = (World::idle().await, Receiver::start().await);
    let types = ["invoice.paid", "invoice.payed", "order.shipped", "custom.order.shipped", "custom."];
    let endpoint = Some(input(&receiver, &types));
    let request = world.caller.request(CreateWebhookEndpointRequest { endpoint });
    let status = world.webhooks().create_webhook_endpoint(request).await.unwrap_err();
    let expected = [
        fault("/endpoint/types/1", "not_allowed"),
        fault("/endpoint/types/2", "not_allowed"),
        fault("/endpoint/types/4", "bad_format"),
    ];
    assert_eq!(faults(&status), expected);
}

#[tokio::test]
async fn an_endpoint_of_the_release_before_keeps_the_events_that_it_names_without_prefix() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    let id = world.endpoint(&receiver, &["custom.order.shipped"]).await.id;
    let as_before = "update automation.webhook_endpoint set types = '{order.shipped}'";
    sqlx::query(as_before).execute(&mut world.database.connect().await).await.unwrap();
    world.change(&id, input(&receiver, &["order.shipped", "deal.won"])).await;
    assert_eq!(world.found(&id).await.types, ["order.shipped", "deal.won"]);
    world.fire("order.shipped", &json!({"order": 4711})).await;
    receiver.until_got(1).await;
    let endpoint = Some(input(&receiver, &["order.lost"]));
    let request = UpdateWebhookEndpointRequest { id, endpoint, update_mask: None };
    let status = world.webhooks().update_webhook_endpoint(world.caller.request(request)).await.unwrap_err();
    assert_eq!(faults(&status), [fault("/endpoint/types/0", "not_allowed")]);
}

#[tokio::test]
async fn a_failed_delivery_is_repeated_on_schedule_and_can_be_repeated_by_hand() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    let endpoint = world.endpoint(&receiver, &[]).await;
    receiver.answer(&[500; 8]);
    world.fire("a.b", &json!({})).await;
    for (attempts, minutes) in (1..).zip([1, 5, 30, 120, 300, 600, 600]) {
        world.until_attempts(&endpoint.id, attempts).await;
        world.clock.advance(TimeDelta::minutes(minutes));
    }
    eventually("it has failed", async || world.deliveries(&endpoint.id).await[0].status == "failed").await;
    assert_eq!(receiver.got().len(), 8);
    let delivery_id = world.deliveries(&endpoint.id).await[0].id.clone();
    let request = RedeliverWebhookRequest { id: endpoint.id.clone(), delivery_id };
    world.webhooks().redeliver_webhook(world.caller.request(request)).await.unwrap();
    eventually("it is delivered", async || world.deliveries(&endpoint.id).await[0].status == "delivered")
        .await;
    let got = receiver.got();
    assert!(
        got.iter()
            .all(|one| one.header("webhook-id") == got[0].header("webhook-id") && one.body == got[0].body)
    );
    assert!(world.found(&endpoint.id).await.meta.unwrap().failing_since.is_none());
}

#[tokio::test]
async fn an_endpoint_that_fails_for_five_days_is_disabled_with_a_mail() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    let endpoint = world.endpoint(&receiver, &[]).await;
    receiver.answer(&[500; 100]);
    for day in 0..6 {
        world.fire("a.b", &json!({"day": day})).await;
        let made = usize::try_from(day + 1).unwrap();
        receiver.until_got(made).await;
        eventually("it is recorded", async || {
            world.deliveries(&endpoint.id).await.iter().all(|one| one.attempts > 0 || one.status == "failed")
        })
        .await;
        world.clock.advance(TimeDelta::days(1));
    }
    eventually("it is disabled", async || !world.found(&endpoint.id).await.active).await;
    let mails = "select count(*) from automation.mail where recipients = '{tech@example.com}'";
    eventually("a mail is queued", async || world.count(mails).await == 1).await;
    world.fire("a.b", &json!({})).await;
    assert!(world.found(&endpoint.id).await.meta.unwrap().disabled_reason.contains("5 days"));
}

#[tokio::test]
async fn a_rotated_secret_signs_beside_the_old_one_for_a_day() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    let old = world.endpoint(&receiver, &[]).await;
    let request = world.caller.request(RotateWebhookSecretRequest { id: old.id.clone() });
    let new = world.webhooks().rotate_webhook_secret(request).await.unwrap().into_inner().data.unwrap();
    world.fire("a.b", &json!({})).await;
    receiver.until_got(1).await;
    world.clock.advance(TimeDelta::hours(24));
    world.fire("a.b", &json!({})).await;
    receiver.until_got(2).await;
    let got = receiver.got();
    assert!(is_signed(&got[0], &old.secret) && is_signed(&got[0], &new.secret));
    assert!(!is_signed(&got[1], &old.secret) && is_signed(&got[1], &new.secret));
}

#[tokio::test]
async fn every_change_that_an_endpoint_shows_is_a_version() {
    let (world, receiver) = (World::idle().await, Receiver::start().await);
    let id = world.endpoint(&receiver, &[]).await.id;
    let first = world.found_in_version(&id, 1).await;
    world.clock.advance(TimeDelta::minutes(1));
    world.change(&id, input(&receiver, &[])).await;
    assert_eq!(world.found_in_version(&id, 1).await, first, "nothing has changed");
    world.change(&id, WebhookEndpointInput { description: "New".into(), ..input(&receiver, &[]) }).await;
    assert_ne!(world.found_in_version(&id, 2).await.updated_at, first.updated_at);
    let rotate = world.caller.request(RotateWebhookSecretRequest { id: id.clone() });
    let rotated = world.webhooks().rotate_webhook_secret(rotate).await.unwrap().into_inner().data.unwrap();
    assert_eq!(rotated.meta, world.found_in_version(&id, 3).await.meta);
    for _ in 0..2 {
        world.assign(&id, "abc").await;
        world.found_in_version(&id, 4).await;
    }
}

#[tokio::test]
async fn an_endpoint_that_begins_or_ends_to_fail_has_a_new_version() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    let id = world.endpoint(&receiver, &[]).await.id;
    receiver.answer(&[500; 2]);
    world.fire("a.b", &json!({})).await;
    world.until_attempts(&id, 1).await;
    let failing = world.found_in_version(&id, 2).await;
    assert!(failing.meta.as_ref().unwrap().failing_since.is_some());
    world.clock.advance(TimeDelta::minutes(1));
    world.until_attempts(&id, 2).await;
    assert_eq!(world.found_in_version(&id, 2).await, failing, "it still fails");
    world.clock.advance(TimeDelta::minutes(6));
    world.until_attempts(&id, 3).await;
    assert!(world.found_in_version(&id, 3).await.meta.unwrap().failing_since.is_none());
    world.fire("a.b", &json!({})).await;
    eventually("both are delivered", async || {
        let deliveries = world.deliveries(&id).await;
        deliveries.len() == 2 && deliveries.iter().all(|one| one.status == "delivered")
    })
    .await;
    world.found_in_version(&id, 3).await;
}

#[tokio::test]
async fn no_secret_comes_into_the_audit_log() {
    let (world, receiver) = (World::idle().await, Receiver::start().await);
    let old = world.endpoint(&receiver, &[]).await;
    let request = world.caller.request(RotateWebhookSecretRequest { id: old.id.clone() });
    let new = world.webhooks().rotate_webhook_secret(request).await.unwrap().into_inner().data.unwrap();
    let request = world.caller.request(RotateSigningSecretRequest {});
    let account = world.webhooks().rotate_signing_secret(request).await.unwrap().into_inner();
    let request = world.caller.request(ListAuditRequest::default());
    let log =
        AuditServiceClient::new(world.channel()).list_audit(request).await.unwrap().into_inner().entries;
    let log: Vec<String> = log.into_iter().map(|entry| entry.before + &entry.after).collect();
    assert!(log.len() >= 3 && log.iter().all(|entry| !entry.is_empty()), "each change is in it: {log:?}");
    for secret in [old.secret, new.secret, account.secret] {
        let bare = secret.strip_prefix("whsec_").expect("a secret of ours");
        assert!(!log.iter().any(|entry| entry.contains(bare)), "{secret} in {log:?}");
    }
}

#[tokio::test]
async fn a_ping_responds_with_its_result() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    let endpoint = world.endpoint(&receiver, &[]).await;
    let ping = async |key: &str| {
        let request = world.caller.keyed(key, TestWebhookEndpointRequest { id: endpoint.id.clone() });
        world.webhooks().test_webhook_endpoint(request).await.unwrap().into_inner().data.unwrap()
    };
    let first = ping("a").await;
    assert_eq!(
        (first.status.as_str(), first.r#type.as_str(), first.attempts),
        ("delivered", "webhook.ping", 1)
    );
    assert_eq!(ping("a").await, first, "a repeat has the answer of the first");
    receiver.answer(&[500]);
    let failed = ping("b").await;
    assert_eq!((failed.status.as_str(), failed.response_status), ("failed", Some(500)));
    assert_eq!(receiver.got().len(), 2);
}

#[tokio::test]
async fn a_deleted_endpoint_gets_nothing() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    let endpoint = world.endpoint(&receiver, &[]).await;
    let delete = || world.caller.request(DeleteWebhookEndpointRequest { id: endpoint.id.clone() });
    world.webhooks().delete_webhook_endpoint(delete()).await.unwrap();
    assert_eq!(
        world.webhooks().delete_webhook_endpoint(delete()).await.unwrap_err().code(),
        tonic::Code::NotFound
    );
    world.fire("a.b", &json!({})).await;
    assert_eq!(world.count("select count(*) from automation.webhook_delivery").await, 0);
}

#[tokio::test]
async fn a_delivery_whose_id_is_malformed_is_not_found() {
    let (world, receiver) = (World::idle().await, Receiver::start().await);
    let endpoint = world.endpoint(&receiver, &[]).await;
    for odd in ["x".to_owned(), "x".repeat(300), "a\0b".to_owned(), crate::support::nobody()] {
        let request = RedeliverWebhookRequest { id: endpoint.id.clone(), delivery_id: odd.clone() };
        let status = world.webhooks().redeliver_webhook(world.caller.request(request)).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::NotFound, "{odd:?}");
    }
}

#[tokio::test]
async fn an_endpoint_must_be_a_web_address() {
    let world = World::idle().await;
    let endpoint =
        WebhookEndpointInput { url: "ftp://x".into(), notify_email: "x".into(), ..Default::default() };
    let request = world.caller.request(CreateWebhookEndpointRequest { endpoint: Some(endpoint) });
    let status = world.webhooks().create_webhook_endpoint(request).await.unwrap_err();
    assert_eq!(
        faults(&status),
        [fault("/endpoint/url", "bad_url"), fault("/endpoint/notify_email", "bad_email")]
    );
}

#[tokio::test]
async fn a_webhook_carries_the_depth_of_its_event_and_ends_with_it() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    world.endpoint(&receiver, &[]).await;
    for depth in [0, 7, 8] {
        let trigger = TriggerInput { event: "a.b".into(), data: "{}".into(), ..TriggerInput::default() };
        let request = world.caller.request_at(depth, TriggerRequest { trigger: Some(trigger) });
        world.triggers().trigger(request).await.unwrap();
    }
    let ended = "select count(*) from automation.webhook_delivery where status = 'failed' and error like 'Not delivered%'";
    eventually("the last was not delivered", async || world.count(ended).await == 1).await;
    receiver.until_got(2).await;
    let mut depths: Vec<String> =
        receiver.got().iter().map(|got| got.header(AUTOMATION_DEPTH).to_owned()).collect();
    depths.sort();
    assert_eq!(depths, ["1", "8"]);
}
