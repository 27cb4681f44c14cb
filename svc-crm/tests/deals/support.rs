//! A gateway with relations and crm behind it, an account to work in, and helpers for what many tests do.

use chassis_base::{Account, Clock};
use chassis_service::Service;
use chassis_testing::{Started, TestCaller, TestDatabase};
use gateway::testing::{Answer, Api, TestGateway};
use http::Method;
use proto::api::event_listener_service_client::EventListenerServiceClient;
use proto::crm::deal_source_service_client::DealSourceServiceClient;
use proto::crm::pipeline_service_client::PipelineServiceClient;
use proto::crm::{CreatePipelineRequest, Pipeline, PipelineInput};
use serde_json::{Value, json};
use svc_crm::Crm;
use svc_relations::Relations;
use tonic::Request;
use tonic::transport::Channel;

const SCOPES: [&str; 4] = ["deals.read", "deals.write", "relations.read", "relations.write"];

pub(crate) struct World {
    pub database: TestDatabase,
    pub clock: Clock,
    gateway: TestGateway,
    crm: Started,
    _relations: Started,
}

impl World {
    pub(crate) async fn new() -> Self {
        let database = TestDatabase::new(&[
            (gateway::NAME, &gateway::MIGRATIONS),
            ("relations", Relations::migrations()),
            ("crm", Crm::migrations()),
        ])
        .await;
        let clock = chassis_testing::clock();
        let relations = chassis_testing::start::<Relations>(database.url(), &clock).await;
        let (crm, gateway) = start(&database, &clock, &relations.url()).await;
        Self { database, clock, gateway, crm, _relations: relations }
    }

    /// Creates an account, with a key that may do everything here.
    pub(crate) async fn user(&self) -> User {
        let account = self.gateway.account(&format!("Account {}", self.clock.id())).await;
        let api = self.gateway.api(&account, &SCOPES).await;
        let mesh = TestCaller::mesh(&account, &self.clock);
        User { api, account, mesh, crm: self.crm.channel() }
    }

    /// Starts another crm with its background work, which runs until the value is dropped.
    pub(crate) async fn start_worker(&self) -> Started {
        chassis_testing::start_working::<Crm>(self.database.url(), &self.clock, &[]).await
    }

    /// Restarts crm and the gateway with an address of relations that nobody listens on. Returns the user with its
    /// connections to them.
    pub(crate) async fn disconnect_relations(&mut self, user: &User) -> User {
        (self.crm, self.gateway) = start(&self.database, &self.clock, "http://127.0.0.1:1").await;
        let api = self.gateway.api_with(user.api.key());
        User { api, crm: self.crm.channel(), ..user.clone() }
    }
}

async fn start(database: &TestDatabase, clock: &Clock, relations: &str) -> (Started, TestGateway) {
    let peer = format!("relations={relations}");
    let flags = ["--peers", &peer];
    let crm = chassis_testing::start_with::<Crm>(database.url(), clock, &flags).await;
    let peers = [peer, format!("crm={}", crm.url())];
    let gateway = TestGateway::start(database, clock, &peers, &["--rate-per-minute", "0"]).await;
    (crm, gateway)
}

/// Works in one account.
#[derive(Clone)]
pub(crate) struct User {
    pub api: Api,
    pub account: Account,
    mesh: TestCaller,
    crm: Channel,
}

impl User {
    pub(crate) async fn client(&self, name: &str) -> String {
        id(&self.api.post("/v1/clients", json!({"company_name": name})).await.expect(201).at("/data"))
    }

    pub(crate) async fn deal(&self, body: Value) -> Value {
        self.api.post("/v1/deals", body).await.expect(201).at("/data")
    }

    /// Creates a deal of a client with nothing but a title.
    pub(crate) async fn titled_deal(&self, client: &str, title: &str) -> Value {
        self.deal(json!({"title": title, "client_id": client})).await
    }

    pub(crate) async fn get(&self, deal: &Value) -> Value {
        self.api.get(&path(deal)).await.expect(200).at("/data")
    }

    pub(crate) async fn patch(&self, deal: &Value, body: Value) -> Answer {
        self.api.patch(&path(deal), body).await
    }

    /// `move`, `win` or `lose`.
    pub(crate) async fn act(&self, deal: &Value, action: &str, body: Value) -> Answer {
        self.api.post(&format!("{}/{action}", path(deal)), body).await
    }

    pub(crate) async fn delete(&self, deal: &Value) -> Answer {
        self.api.send(Method::DELETE, &path(deal), &[], "").await
    }

    /// The total of the deals that a query selects.
    pub(crate) async fn total(&self, query: &str) -> i64 {
        self.api.get(&format!("/v1/deals?{query}")).await.expect(200).at("/meta/total").as_i64().unwrap()
    }

    /// The titles that a query selects, in their order.
    pub(crate) async fn titles(&self, query: &str) -> Vec<String> {
        let listed = self.api.get(&format!("/v1/deals?{query}")).await.expect(200).at("/data");
        let title = |deal: &Value| deal["title"].as_str().unwrap().to_owned();
        listed.as_array().unwrap().iter().map(title).collect()
    }

    /// A request of another service.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        self.mesh.request(message)
    }

    pub(crate) fn caller(&self) -> &TestCaller {
        &self.mesh
    }

    pub(crate) fn channel(&self) -> Channel {
        self.crm.clone()
    }

    pub(crate) fn pipelines(&self) -> PipelineServiceClient<Channel> {
        PipelineServiceClient::new(self.crm.clone())
    }

    pub(crate) fn sources(&self) -> DealSourceServiceClient<Channel> {
        DealSourceServiceClient::new(self.crm.clone())
    }

    pub(crate) fn listener(&self) -> EventListenerServiceClient<Channel> {
        EventListenerServiceClient::new(self.crm.clone())
    }

    pub(crate) async fn pipeline(&self, name: &str, phases: &[&str]) -> Pipeline {
        let request = CreatePipelineRequest {
            pipeline: Some(PipelineInput { name: name.to_owned(), ..PipelineInput::default() }),
            phases: phases.iter().map(ToString::to_string).collect(),
        };
        let created = self.pipelines().create_pipeline(self.request(request)).await.unwrap();
        created.into_inner().data.unwrap()
    }

    /// The pipelines as REST shows them.
    pub(crate) async fn board(&self) -> Vec<Value> {
        self.api.get("/v1/pipelines").await.expect(200).at("/data").as_array().unwrap().clone()
    }

    /// Takes the events of the account from the log, in the order in which they happened.
    pub(crate) async fn take_events(&self, world: &World) -> Vec<(String, Value)> {
        sqlx::query_as(
            "with removed as (select * from crm.log where account_id = $1 and event is not null),
            forgotten as (update crm.log set event = null where account_id = $1)
             select event, data::json from removed order by id",
        )
        .bind(self.account.id)
        .fetch_all(&mut world.database.connect().await)
        .await
        .unwrap()
    }

    pub(crate) async fn take_event_names(&self, world: &World) -> Vec<String> {
        self.take_events(world).await.into_iter().map(|(name, _)| name).collect()
    }
}

pub(crate) fn id(thing: &Value) -> String {
    thing["id"].as_str().unwrap().to_owned()
}

pub(crate) fn path(deal: &Value) -> String {
    format!("/v1/deals/{}", id(deal))
}

/// The id of a phase of a pipeline as REST shows it; `index` counts from 0.
pub(crate) fn phase(pipeline: &Value, index: usize) -> String {
    id(&pipeline["phases"][index])
}
