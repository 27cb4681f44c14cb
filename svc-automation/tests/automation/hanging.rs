//! Receivers that take a request and never respond: they delay nobody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chassis_testing::{TestCaller, eventually};
use chrono::TimeDelta;
use proto::automation::{CreateWebhookEndpointRequest, TriggerInput, TriggerRequest, WebhookEndpointInput};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::support::{MAKE_CLIENT, Receiver, World};

/// Accepts, reads and never responds.
struct Hanging {
    url: String,
    open: Arc<AtomicUsize>,
    came: Arc<AtomicUsize>,
}

impl Hanging {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (open, came) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counts = (Arc::clone(&open), Arc::clone(&came));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (open, came) = counts.clone();
                open.fetch_add(1, Ordering::SeqCst);
                came.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let mut buffer = [0; 4096];
                    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { url, open, came }
    }

    /// Requests that wait for an answer now.
    fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Requests that have come so far.
    fn came(&self) -> usize {
        self.came.load(Ordering::SeqCst)
    }
}

impl World {
    async fn endpoint_of(&self, caller: &TestCaller, url: &str) -> String {
        let endpoint = WebhookEndpointInput { url: url.to_owned(), ..WebhookEndpointInput::default() };
        let request = caller.request(CreateWebhookEndpointRequest { endpoint: Some(endpoint) });
        self.webhooks().create_webhook_endpoint(request).await.unwrap().into_inner().data.unwrap().id
    }

    async fn fire_for(&self, caller: &TestCaller, event: &str) {
        let trigger = TriggerInput { event: event.into(), ..TriggerInput::default() };
        let request = caller.request(TriggerRequest { trigger: Some(trigger) });
        self.triggers().trigger(request).await.unwrap();
    }

    fn caller_of_another_account(&self) -> TestCaller {
        TestCaller::mesh(&chassis_testing::account(), &self.clock)
    }
}

#[tokio::test]
async fn a_hanging_endpoint_delays_no_other_endpoint_of_its_account() {
    let (world, hanging) = (World::working().await, Hanging::start().await);
    let healthy = [Receiver::start().await, Receiver::start().await];
    world.endpoint_of(&world.caller, &hanging.url).await;
    for receiver in &healthy {
        world.endpoint_of(&world.caller, &receiver.url).await;
    }
    for _ in 0..30 {
        world.fire("a.b", &json!({})).await;
    }
    for receiver in &healthy {
        receiver.until_got(30).await;
    }
    assert_eq!(hanging.came(), 1, "it is tried with one delivery; its others wait");
}

#[tokio::test]
async fn more_hanging_endpoints_than_an_account_has_slots_delay_none_of_its_others() {
    let (world, hanging) = (World::working().await, Hanging::start().await);
    for _ in 0..20 {
        world.endpoint_of(&world.caller, &hanging.url).await;
    }
    world.fire("a.b", &json!({})).await;
    eventually("all twenty wait for an answer", async || hanging.open() == 20).await;
    let receiver = Receiver::start().await;
    world.endpoint_of(&world.caller, &receiver.url).await;
    world.fire("a.b", &json!({})).await;
    receiver.until_got(1).await;
}

#[tokio::test]
async fn accounts_with_hanging_endpoints_delay_no_other_account() {
    let (world, hanging) = (World::working().await, Hanging::start().await);
    for _ in 0..12 {
        let caller = world.caller_of_another_account();
        world.endpoint_of(&caller, &hanging.url).await;
        world.fire_for(&caller, "a.b").await;
    }
    eventually("all twelve wait for an answer", async || hanging.open() == 12).await;
    let receiver = Receiver::start().await;
    world.endpoint_of(&world.caller, &receiver.url).await;
    world.fire("a.b", &json!({})).await;
    receiver.until_got(1).await;
}

#[tokio::test]
async fn postponed_deliveries_are_sent_when_the_endpoint_is_probed_again() {
    let (mut world, receiver) = (World::idle().await, Receiver::start().await);
    let endpoint = world.endpoint_of(&world.caller, &receiver.url).await;
    world.fire("a.b", &json!({"order": "before"})).await;
    let retry_at = world.clock.now() + TimeDelta::minutes(1);
    sqlx::query("update automation.webhook_endpoint set unanswered = 3, retry_at = $1, failing_since = $1")
        .bind(retry_at)
        .execute(&mut world.database.connect().await)
        .await
        .unwrap();
    world.fire("a.b", &json!({"order": "after"})).await;
    world.service = Some(world.another().await);
    eventually("both wait until then", async || {
        let sql =
            "select count(*) from automation.webhook_delivery delivery, automation.webhook_endpoint endpoint
                   where delivery.next_at = endpoint.retry_at";
        world.count(sql).await == 2
    })
    .await;
    assert!(receiver.got().is_empty());
    world.clock.advance(TimeDelta::minutes(1));
    receiver.until_got(2).await;
    eventually("its backoff has ended", async || {
        let sql = "select count(*) from automation.webhook_endpoint
                   where unanswered = 0 and retry_at is null and failing_since is null";
        world.count(sql).await == 1
    })
    .await;
    assert!(!endpoint.is_empty());
}

#[tokio::test]
async fn a_hanging_receiver_of_one_flow_delays_no_other_flow() {
    let (world, hanging) = (World::working().await, Hanging::start().await);
    let ask = format!(
        "
name: Ask
trigger: {{custom: ask}}
steps:
  - {{id: ask, http: {{url: '{}', body: {{}}}}}}
",
        hanging.url
    );
    world.apply(&ask).await;
    world.apply(MAKE_CLIENT).await;
    for _ in 0..20 {
        world.start("ask", &json!({})).await;
    }
    eventually("one waits for an answer", async || hanging.open() == 1).await;
    let run = world.start("make.client", &json!({"name": "Bakery"})).await;
    world.until(&run, "success").await;
    assert_eq!(hanging.came(), 1, "the flow is tried with one run; its others wait");
}
