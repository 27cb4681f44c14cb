//! A running automation with relations beside it, an external receiver, and the content of errors.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use chassis_base::{Account, Clock};
use chassis_service::Service;
use chassis_testing::{Started, TestCaller, TestDatabase, eventually};
use prost::Message;
use proto::api::ProvisionAccountRequest;
use proto::api::event_listener_service_client::EventListenerServiceClient;
use proto::api::provisioning_service_client::ProvisioningServiceClient;
use proto::automation::flow_service_client::FlowServiceClient;
use proto::automation::run_service_client::RunServiceClient;
use proto::automation::trigger_service_client::TriggerServiceClient;
use proto::automation::webhook_service_client::WebhookServiceClient;
use proto::automation::{
    ApplyFlowRequest, ApplyFlowResponse, CancelRunRequest, Flow, GetRunRequest, Run, TriggerInput,
    TriggerRequest, TriggerResult,
};
use svc_automation::Automation;
use svc_relations::Relations;
use tempfile::TempDir;
use tokio::sync::Notify;
use tonic::Status;
use tonic::transport::Channel;
use uuid::Uuid;

pub(crate) struct World {
    pub database: TestDatabase,
    pub clock: Clock,
    _relations: Started,
    pub account: Account,
    pub caller: TestCaller,
    /// The first replica; others come with [`World::another`].
    pub service: Option<Started>,
    flags: Vec<String>,
    _mail: TempDir,
}

impl World {
    /// With its background work.
    pub(crate) async fn working() -> Self {
        let mut world = Self::idle().await;
        world.service = Some(world.another().await);
        world
    }

    /// Without a replica that does background work.
    pub(crate) async fn idle() -> Self {
        let database = TestDatabase::new(&[
            (Automation::NAME, Automation::migrations()),
            (Relations::NAME, Relations::migrations()),
        ])
        .await;
        let (clock, mail) = (chassis_testing::clock(), tempfile::tempdir().unwrap());
        let relations = chassis_testing::start::<Relations>(database.url(), &clock).await;
        let flags = vec![
            "--peers".to_owned(),
            format!("relations={}", relations.url()),
            "--mail-dir".to_owned(),
            mail.path().display().to_string(),
            "--allow-private-networks".to_owned(),
        ];
        let listed: Vec<&str> = flags.iter().map(String::as_str).collect();
        let service = chassis_testing::start_with::<Automation>(database.url(), &clock, &listed).await;
        let account = chassis_testing::account();
        let caller = TestCaller::mesh(&account, &clock);
        Self {
            database,
            clock,
            _relations: relations,
            account,
            caller,
            service: Some(service),
            flags,
            _mail: mail,
        }
    }

    /// Another replica, with background work. Dropping it ends it as a kill would.
    pub(crate) async fn another(&self) -> Started {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        chassis_testing::start_working::<Automation>(self.database.url(), &self.clock, &flags).await
    }

    pub(crate) fn channel(&self) -> Channel {
        self.service.as_ref().expect("a replica").channel()
    }

    pub(crate) fn flows(&self) -> FlowServiceClient<Channel> {
        FlowServiceClient::new(self.channel())
    }

    pub(crate) fn runs(&self) -> RunServiceClient<Channel> {
        RunServiceClient::new(self.channel())
    }

    pub(crate) fn triggers(&self) -> TriggerServiceClient<Channel> {
        TriggerServiceClient::new(self.channel())
    }

    pub(crate) fn webhooks(&self) -> WebhookServiceClient<Channel> {
        WebhookServiceClient::new(self.channel())
    }

    pub(crate) fn listener(&self) -> EventListenerServiceClient<Channel> {
        EventListenerServiceClient::new(self.channel())
    }

    pub(crate) async fn provision(&self) {
        let mut client = ProvisioningServiceClient::new(self.channel());
        let request = ProvisionAccountRequest { name: "Bakery".into() };
        client.provision_account(self.caller.request(request)).await.unwrap();
    }

    pub(crate) async fn try_apply(&self, definition: &str) -> Result<ApplyFlowResponse, Status> {
        let request = ApplyFlowRequest { definition: definition.to_owned(), active: Some(true) };
        Ok(self.flows().apply_flow(self.caller.request(request)).await?.into_inner())
    }

    /// Stores a flow, active.
    pub(crate) async fn apply(&self, definition: &str) -> Flow {
        self.try_apply(definition).await.unwrap().data.unwrap()
    }

    pub(crate) async fn fire(&self, event: &str, data: &serde_json::Value) -> TriggerResult {
        let trigger = TriggerInput { event: event.into(), data: data.to_string(), ..TriggerInput::default() };
        let request = TriggerRequest { trigger: Some(trigger) };
        self.triggers().trigger(self.caller.request(request)).await.unwrap().into_inner().data.unwrap()
    }

    /// Fires an event that starts one run; returns the run's id.
    pub(crate) async fn start(&self, event: &str, data: &serde_json::Value) -> String {
        let fired = self.fire(event, data).await;
        assert_eq!(fired.matched, 1);
        fired.runs[0].run_id.clone()
    }

    pub(crate) async fn run(&self, id: &str) -> Run {
        let request = self.caller.request(GetRunRequest { id: id.to_owned() });
        self.runs().get_run(request).await.unwrap().into_inner().data.unwrap()
    }

    /// Waits until the run has this status.
    pub(crate) async fn until(&self, id: &str, status: &str) -> Run {
        eventually(&format!("the run is {status}"), async || {
            let run = self.run(id).await;
            let ended = ["success", "partial", "failed", "cancelled"].contains(&run.status.as_str());
            assert!(run.status == status || !ended, "{run:?}");
            run.status == status
        })
        .await;
        self.run(id).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> Result<String, Status> {
        let request = self.caller.request(CancelRunRequest { id: id.to_owned() });
        Ok(self.runs().cancel_run(request).await?.into_inner().data.unwrap().status)
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut self.database.connect().await).await.unwrap()
    }

    pub(crate) async fn clients(&self) -> i64 {
        self.count("select count(*) from relations.relation").await
    }

    /// The log has every version of the record up to this one, and shows the last as the record's GET does.
    pub(crate) async fn assert_logged(
        &self,
        kind: &str,
        id: &str,
        version: i64,
        shown: &(impl Message + std::fmt::Debug),
    ) {
        let sql = "select version, image from automation.log
                   where kind = $1 and record_id = $2 and change is not null order by version";
        let entries: Vec<(i64, Option<Vec<u8>>)> = sqlx::query_as(sql)
            .bind(kind)
            .bind(id)
            .fetch_all(&mut self.database.connect().await)
            .await
            .unwrap();
        let image = entries.last().and_then(|(_, image)| image.clone());
        let versions: Vec<i64> = entries.into_iter().map(|(version, _)| version).collect();
        assert_eq!(versions, (1..=version).collect::<Vec<_>>(), "{kind}");
        assert_eq!(image, Some(shown.encode_to_vec()), "{kind}: {shown:?}");
    }

    pub(crate) async fn execute(&self, sql: &'static str) {
        sqlx::query(sql).execute(&mut self.database.connect().await).await.unwrap();
    }
}

/// The outcome of each step of a run.
pub(crate) fn outcomes(run: &Run) -> Vec<(&str, &str)> {
    let steps = &run.meta.as_ref().unwrap().steps;
    steps.iter().map(|step| (step.id.as_str(), step.outcome.as_str())).collect()
}

/// A request that the receiver got.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

/// An external receiver: stores what it gets, and responds with the given statuses, 200 by default.
#[derive(Clone, Default)]
pub(crate) struct Receiver {
    got: Arc<Mutex<Vec<Got>>>,
    answers: Arc<Mutex<VecDeque<StatusCode>>>,
    /// While there is one, responses wait for it.
    gate: Arc<Mutex<Option<Arc<Notify>>>>,
    pub url: String,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let receiver = Self { url, ..Self::default() };
        let app = Router::new().fallback(receive).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        receiver
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    pub(crate) fn answer(&self, statuses: &[u16]) {
        let statuses = statuses.iter().map(|status| StatusCode::from_u16(*status).unwrap());
        *self.answers.lock().unwrap() = statuses.collect();
    }

    /// Keeps requests waiting until the gate is opened.
    pub(crate) fn close(&self) -> Arc<Notify> {
        let gate = Arc::new(Notify::new());
        *self.gate.lock().unwrap() = Some(Arc::clone(&gate));
        gate
    }

    /// Lets all requests through from now on.
    pub(crate) fn open(&self) {
        if let Some(gate) = self.gate.lock().unwrap().take() {
            gate.notify_waiters();
        }
    }

    pub(crate) async fn until_got(&self, count: usize) {
        eventually(&format!("{count} requests have come"), async || self.got().len() >= count).await;
    }
}

async fn receive(
    State(receiver): State<Receiver>,
    uri: axum::http::Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let body = String::from_utf8(body.to_vec()).unwrap();
    let gate = receiver.gate.lock().unwrap().clone();
    let opened = gate.as_ref().map(|gate| Arc::clone(gate).notified_owned());
    receiver.got.lock().unwrap().push(Got { path: uri.path().to_owned(), headers, body });
    if let Some(opened) = opened {
        opened.await;
    }
    let status = receiver.answers.lock().unwrap().pop_front().unwrap_or(StatusCode::OK);
    (status, r#"{"seen": true}"#.to_owned())
}

/// The code of a problem.
pub(crate) fn problem(status: &Status) -> String {
    chassis_testing::error_info(status).reason
}

pub(crate) fn fault(pointer: &str, code: &str) -> (String, String) {
    (pointer.to_owned(), code.to_owned())
}

/// A flow that makes a client of the event's name.
pub(crate) const MAKE_CLIENT: &str = "
name: Make a client
trigger: {custom: make.client}
steps:
  - id: make
    call:
      method: admin.relations.v1.ClientService/CreateClient
      with: {client: {company_name: '{{ data.name }}', external_id: '{{ run.id }}'}}
";

pub(crate) fn nobody() -> String {
    Uuid::new_v4().to_string()
}
