//! A gateway with clients and billing behind it, an account to work in, and helpers for what the tests do.

use chassis_base::{Account, Clock};
use chassis_service::Service;
use chassis_testing::{Started, TestCaller, TestDatabase, eventually};
use chrono::{DateTime, TimeDelta};
use gateway::testing::{Answer, Api, TestGateway};
use proto::api::event_listener_service_client::EventListenerServiceClient;
use proto::api::{DeliverEventsRequest, Event};
use proto::billing::subscription_service_client::SubscriptionServiceClient;
use proto::billing::{GetSubscriptionRequest, Subscription};
use serde_json::{Value, json};
use svc_billing::Billing;
use svc_relations::Relations;
use tempfile::TempDir;

const SCOPES: [&str; 4] = ["invoices.read", "invoices.write", "relations.read", "relations.write"];

pub(crate) struct World {
    pub database: TestDatabase,
    pub clock: Clock,
    gateway: TestGateway,
    replicas: Vec<Started>,
    flags: Vec<String>,
    _relations: Started,
    _files: TempDir,
}

impl World {
    /// On Sunday, 15 November 2026, in the morning. Nothing works in the background.
    pub(crate) async fn new() -> Self {
        let database = TestDatabase::new(&[
            (gateway::NAME, &gateway::MIGRATIONS),
            ("relations", Relations::migrations()),
            ("billing", Billing::migrations()),
        ])
        .await;
        let clock = chassis_testing::clock();
        let files = tempfile::tempdir().unwrap();
        let relations = chassis_testing::start::<Relations>(database.url(), &clock).await;
        let peers = format!("relations={}", relations.url());
        let folder = files.path().to_str().unwrap();
        let flags = ["--peers", &peers, "--files-dir", folder];
        let flags: Vec<String> = flags.map(str::to_owned).to_vec();
        let given: Vec<&str> = flags.iter().map(String::as_str).collect();
        let billing = chassis_testing::start_with::<Billing>(database.url(), &clock, &given).await;
        let peers = [peers, format!("billing={}", billing.url())];
        let gateway = TestGateway::start(&database, &clock, &peers, &["--rate-per-minute", "0"]).await;
        let replicas = vec![billing];
        Self { database, clock, gateway, replicas, flags, _relations: relations, _files: files }
    }

    /// The same with so many replicas of billing that work in the background.
    pub(crate) async fn working(replicas: usize) -> Self {
        let mut world = Self::new().await;
        for _ in 0..replicas {
            world.add_replica().await;
        }
        world
    }

    /// Another replica of billing, which works in the background.
    pub(crate) async fn add_replica(&mut self) {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        let replica =
            chassis_testing::start_working::<Billing>(self.database.url(), &self.clock, &flags).await;
        self.replicas.push(replica);
    }

    /// Ends the work of the latest replica as a kill would: its leases stay.
    pub(crate) fn kill_replica(&mut self) {
        self.replicas.pop();
    }

    /// An account of its own, with a key that may do everything here.
    pub(crate) async fn user(&self) -> User {
        let account = self.gateway.account(&format!("Account {}", self.clock.id())).await;
        let api = self.gateway.api(&account, &SCOPES).await;
        User { api, account }
    }

    /// Delivers an event of another service to billing.
    pub(crate) async fn deliver(&self, user: &User, event: Event) {
        let caller = TestCaller::mesh(&user.account, &self.clock);
        let mut listener = EventListenerServiceClient::new(self.replicas[0].channel());
        let request = DeliverEventsRequest { events: vec![event] };
        listener.deliver_events(caller.request(request)).await.unwrap();
    }

    /// The version of a subscription. The log must have it as it is shown.
    pub(crate) async fn version(&self, user: &User, subscription: &Value) -> i64 {
        let caller = TestCaller::mesh(&user.account, &self.clock);
        let mut service = SubscriptionServiceClient::new(self.replicas[0].channel());
        let request = caller.request(GetSubscriptionRequest { id: id(subscription) });
        let shown = service.get_subscription(request).await.unwrap().into_inner().data.unwrap();
        let image: Vec<u8> = sqlx::query_scalar(
            "select image from billing.log where account_id = $1 and kind = 'subscription' and record_id = $2 \
             and change is not null order by version desc limit 1",
        )
        .bind(user.account.id)
        .bind(&shown.id)
        .fetch_one(&mut self.database.connect().await)
        .await
        .unwrap();
        let logged: Subscription = prost::Message::decode(image.as_slice()).unwrap();
        assert_eq!(logged, shown);
        shown.meta.unwrap().version
    }

    /// Moves the clock to a time, as RFC 3339.
    pub(crate) fn move_to(&self, time: &str) {
        let time = DateTime::parse_from_rfc3339(time).unwrap().to_utc();
        let ahead = time - self.clock.now();
        assert!(ahead >= TimeDelta::zero(), "time does not go back");
        self.clock.advance(ahead);
    }

    /// Waits until no subscription of the account is due.
    pub(crate) async fn settled(&self, user: &User) {
        eventually("no subscription is due", async || {
            let waiting: i64 = sqlx::query_scalar(
                "select count(*) from billing.subscription where account_id = $1 and due_at <= $2",
            )
            .bind(user.account.id)
            .bind(self.clock.now())
            .fetch_one(&mut self.database.connect().await)
            .await
            .unwrap();
            waiting == 0
        })
        .await;
    }
}

/// Works in one account.
#[derive(Clone)]
pub(crate) struct User {
    pub api: Api,
    pub account: Account,
}

impl User {
    /// A company with this name; its id.
    pub(crate) async fn client(&self, name: &str) -> String {
        id(&self.api.post("/v1/clients", json!({"company_name": name})).await.expect(201).at("/data"))
    }

    pub(crate) async fn create(&self, body: Value) -> Value {
        self.api.post("/v1/subscriptions", body).await.expect(201).at("/data")
    }

    /// Hosting for 10 without VAT, for a new client, with more or other values.
    pub(crate) async fn hosting(&self, more: Value) -> Value {
        let client = self.client("Bakery").await;
        let mut body = json!({
            "client_id": client, "title": "Hosting", "subscription_start": "2026-11-30",
            "lines": [{"title": "Server", "unit_price": 10, "vat_code": "VAT0"}],
        });
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        self.create(body).await
    }

    pub(crate) async fn get(&self, subscription: &Value) -> Value {
        self.api.get(&path(subscription)).await.expect(200).at("/data")
    }

    pub(crate) async fn patch(&self, subscription: &Value, body: Value) -> Answer {
        self.api.patch(&path(subscription), body).await
    }

    /// Activates or deactivates.
    pub(crate) async fn act(&self, subscription: &Value, action: &str, body: Value) -> Answer {
        self.api.post(&format!("{}/{action}", path(subscription)), body).await
    }

    /// The invoices of a subscription, the earliest first.
    pub(crate) async fn invoices(&self, subscription: &Value) -> Vec<Value> {
        let path = format!("{}/invoices?sort=invoice_date&order=asc&per_page=100", path(subscription));
        self.api.get(&path).await.expect(200).at("/data").as_array().unwrap().clone()
    }

    /// Their dates.
    pub(crate) async fn dates(&self, subscription: &Value) -> Vec<String> {
        let invoices = self.invoices(subscription).await;
        invoices.iter().map(|invoice| invoice["invoice_date"].as_str().unwrap().to_owned()).collect()
    }
}

pub(crate) fn id(thing: &Value) -> String {
    thing["id"].as_str().unwrap().to_owned()
}

pub(crate) fn path(subscription: &Value) -> String {
    format!("/v1/subscriptions/{}", id(subscription))
}

/// The code of a refusal for the state of things.
pub(crate) fn conflict(answer: Answer) -> String {
    answer.expect(409).at("/code").as_str().unwrap().to_owned()
}
