//! A gateway with clients and billing behind it, billing working in the background, and short words for what tests do.

use chassis_base::{Account, Clock};
use chassis_service::Service;
use chassis_testing::{Started, TestCaller, TestDatabase, eventually};
use chrono::{DateTime, TimeDelta};
use gateway::testing::{Answer, Api, TestGateway};
use http::Method;
use proto::scans::scan_service_client::ScanServiceClient;
use proto::scans::{RunScansRequest, SetThresholdRequest};
use serde_json::{Value, json};
use svc_billing::Billing;
use svc_relations::Relations;
use tempfile::TempDir;

/// Making a PDF takes long without optimisation, and longer beside other tests.
const DEADLINE: [&str; 2] = ["--deadline-ms", "120000"];
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
    /// On Sunday, 15 November 2026, in the morning.
    pub(crate) async fn new() -> Self {
        let mut world = Self::idle().await;
        world.add_replica().await;
        world
    }

    /// The same, and nothing works in the background yet.
    pub(crate) async fn idle() -> Self {
        let database = TestDatabase::new(&[
            (gateway::NAME, &gateway::MIGRATIONS),
            ("relations", Relations::migrations()),
            ("billing", Billing::migrations()),
        ])
        .await;
        let clock = chassis_testing::clock();
        let files = tempfile::tempdir().unwrap();
        let relations = chassis_testing::start_with::<Relations>(database.url(), &clock, &DEADLINE).await;
        let peers = format!("relations={}", relations.url());
        let folder = files.path().to_str().unwrap();
        let flags = ["--peers", &peers, "--files-dir", folder, "--mail-dir", folder];
        let flags: Vec<String> = flags.iter().chain(&DEADLINE).map(|flag| (*flag).to_owned()).collect();
        let given: Vec<&str> = flags.iter().map(String::as_str).collect();
        let billing = chassis_testing::start_with::<Billing>(database.url(), &clock, &given).await;
        let peers = [peers, format!("billing={}", billing.url())];
        let settings = [&["--rate-per-minute", "0"][..], &DEADLINE].concat();
        let gateway = TestGateway::start(&database, &clock, &peers, &settings).await;
        let replicas = vec![billing];
        Self { database, clock, gateway, replicas, flags, _relations: relations, _files: files }
    }

    /// Another replica of billing, which works in the background.
    pub(crate) async fn add_replica(&mut self) {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        let replica =
            chassis_testing::start_working::<Billing>(self.database.url(), &self.clock, &flags).await;
        self.replicas.push(replica);
    }

    /// An account of its own, with a key that may do everything here.
    pub(crate) async fn user(&self) -> User {
        let account = self.gateway.account(&format!("Account {}", self.clock.id())).await;
        let api = self.gateway.api(&account, &SCOPES).await;
        User { api, account }
    }

    /// Moves the clock to a time, as RFC 3339, and waits until the account has been looked through then.
    pub(crate) async fn at(&self, time: &str, user: &User) {
        let time = DateTime::parse_from_rfc3339(time).unwrap().to_utc();
        let ahead = time - self.clock.now();
        assert!(ahead >= TimeDelta::zero(), "time does not go back");
        self.clock.advance(ahead);
        self.look(user).await;
    }

    /// Has the account looked through, and waits for the end of it.
    pub(crate) async fn look(&self, user: &User) {
        let caller = TestCaller::mesh(&user.account, &self.clock);
        let mut scans = ScanServiceClient::new(self.replicas[0].channel());
        scans.run_scans(caller.request(RunScansRequest {})).await.unwrap();
        self.looked(user).await;
    }

    async fn looked(&self, user: &User) {
        eventually("the account is looked through", async || {
            sqlx::query_scalar(
                "select exists (select from billing.scan_turn where account_id = $1 and next_at > $2)",
            )
            .bind(user.account.id)
            .bind(self.clock.now())
            .fetch_one(&mut self.database.connect().await)
            .await
            .unwrap()
        })
        .await;
    }

    pub(crate) async fn set_threshold(&self, user: &User, event: &str, value: Option<i32>) {
        let caller = TestCaller::mesh(&user.account, &self.clock);
        let mut scans = ScanServiceClient::new(self.replicas[0].channel());
        let request = SetThresholdRequest { event: event.into(), value };
        scans.set_threshold(caller.request(request)).await.unwrap();
    }

    /// Opens the page of a document as a visitor does.
    pub(crate) async fn visit(&self, document: &Value) {
        let url = document["web_url"].as_str().unwrap();
        let page = &url[url.find("/documents/").unwrap()..];
        let browser = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
        self.gateway.api_with("").send(Method::GET, page, &[browser], "").await.expect(200);
    }

    /// The account's events of one type: the entity and the data, oldest first.
    pub(crate) async fn events(&self, user: &User, event: &str) -> Vec<(String, Value)> {
        sqlx::query_as(
            "select record_id, data::json from billing.log where account_id = $1 and event = $2
             order by id",
        )
        .bind(user.account.id)
        .bind(event)
        .fetch_all(&mut self.database.connect().await)
        .await
        .unwrap()
    }

    /// The entities of these.
    pub(crate) async fn entities_of(&self, user: &User, event: &str) -> Vec<String> {
        self.events(user, event).await.into_iter().map(|(entity, _)| entity).collect()
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

    /// A final document of a row of 10 without VAT, with more or other values; `list` is such as `invoices`.
    pub(crate) async fn create(&self, list: &str, client: &str, more: Value) -> Value {
        let mut body = json!({
            "title": "Bread", "client_id": client, "generation_mode": "final",
            "rows": [{"name": "Row", "unit_price": 10, "vat_rate": "0"}],
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.api.post(&format!("/v1/{list}"), body).await.expect(201).at("/data")
    }

    /// Does something with a document, such as `send`.
    pub(crate) async fn act(&self, list: &str, document: &Value, action: &str, body: Value) -> Answer {
        self.api.post(&format!("/v1/{list}/{}/{action}", id(document)), body).await
    }

    pub(crate) async fn send(&self, list: &str, document: &Value) {
        let letter = json!({"to": "sanne@example.com", "subject": "S", "message": "M", "include_pdf": false});
        self.act(list, document, "send", letter).await.expect(200);
    }

    pub(crate) async fn patch(&self, list: &str, thing: &Value, body: Value) {
        self.api.patch(&format!("/v1/{list}/{}", id(thing)), body).await.expect(200);
    }
}

pub(crate) fn id(thing: &Value) -> String {
    thing["id"].as_str().unwrap().to_owned()
}
