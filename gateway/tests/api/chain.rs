//! A chain through the whole mesh: an invoice becomes late because time passes, billing tells of it, flows wait, remind the
//! client by mail, make a task and tell a server outside, and everyone can see what they did.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chassis_base::Account;
use chassis_testing::{SmtpServer, TestCaller, eventually, run_scans};
use chrono::TimeDelta;
use gateway::testing::Api;
use hmac::{Hmac, KeyInit, Mac};
use proto::automation::flow_service_client::FlowServiceClient;
use proto::automation::webhook_service_client::WebhookServiceClient;
use proto::automation::{ApplyFlowRequest, GetSigningSecretRequest};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::working_mesh::WorkingMesh;

const FLOW: &str = "
name: Late invoice
trigger: {event: invoice.late}
steps:
  - {id: patience, wait: {for: 3d}}
  - {id: client, call: {method: admin.relations.v1.ClientService/GetClient, with: {id: '{{ data.client_id }}'}}}
  - id: remind
    mail:
      to: '{{ steps.client.answer.data.email }}'
      subject: 'Your invoice {{ data.number }}'
      text: 'It was due on {{ data.due_date }}.'
  - id: task
    call:
      method: admin.work.v1.TaskService/CreateTask
      with: {task: {title: 'Call about {{ data.number }}', client_id: '{{ data.client_id }}', deadline: '{{ today }}'}}
  - id: tell
    http: {url: RECEIVER/flow, body: {number: '{{ data.number }}', task: '{{ steps.task.answer.data.id }}'}}
";
/// The flow that every account has for the same occasion.
const READY_MADE: &str = "Reminder for a late invoice";

/// What came to the server outside: path, headers and body.
type Got = Arc<Mutex<Vec<(String, HeaderMap, String)>>>;

pub(crate) async fn receiver() -> (String, Got) {
    async fn receive(State(got): State<Got>, uri: axum::http::Uri, headers: HeaderMap, body: String) {
        got.lock().unwrap().push((uri.path().to_owned(), headers, body));
    }
    let (listener, got) = (tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap(), Got::default());
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = Router::new().fallback(receive).with_state(Arc::clone(&got));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, got)
}

/// Whether the request is signed with the secret, as Standard Webhooks says.
fn is_signed(headers: &HeaderMap, body: &str, secret: &str) -> bool {
    let header = |name: &str| headers[name].to_str().unwrap();
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("{}.{}.{body}", header("webhook-id"), header("webhook-timestamp")).as_bytes());
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    header("webhook-signature").split(' ').any(|signature| signature == expected)
}

/// A mesh at work, with an account, and servers outside that receive mails and requests.
struct Chain {
    mesh: WorkingMesh,
    account: Account,
    api: Api,
    smtp: SmtpServer,
    url: String,
    got: Got,
}

impl Chain {
    async fn start() -> Self {
        let ((url, got), smtp) = (receiver().await, SmtpServer::start().await);
        let mesh = WorkingMesh::start(&["--smtp-url", &smtp.url()]).await;
        let account = mesh.gateway.account("Bakery").await;
        let all: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
        let api = mesh.gateway.api(&account, &all).await;
        Self { mesh, account, api, smtp, url, got }
    }

    fn caller(&self) -> TestCaller {
        TestCaller::mesh(&self.account, &self.mesh.clock)
    }

    /// Switches both flows on, and adds an endpoint for the event of late invoices. Returns its secret.
    async fn prepare(&self) -> String {
        let definition = FLOW.replace("RECEIVER", &self.url);
        let request = self.caller().request(ApplyFlowRequest { definition, active: Some(true) });
        FlowServiceClient::new(self.mesh.automation.channel()).apply_flow(request).await.unwrap();
        let flows = self.api.get("/v1/automation/flows").await.expect(200).at("/data");
        let ready = flows.as_array().unwrap().iter().find(|flow| flow["name"] == READY_MADE).unwrap();
        let path = format!("/v1/automation/flows/{}", ready["id"].as_str().unwrap());
        self.api.patch(&path, json!({"active": true})).await.expect(200);
        let endpoint = json!({"url": format!("{}/endpoint", self.url), "types": ["invoice.late"]});
        let made = self.api.post("/v1/webhook-endpoints", endpoint).await.expect(201);
        made.at("/data/secret").as_str().unwrap().to_owned()
    }

    /// A final invoice that is due in two weeks.
    async fn invoice(&self) -> Value {
        let client = json!({"company_name": "Korenbloem", "email": "sanne@korenbloem.example"});
        let client = self.api.post("/v1/clients", client).await.expect(201).at("/data/id");
        let body = json!({
            "title": "Bread", "client_id": client, "generation_mode": "final", "due_date": "2026-11-29",
            "rows": [{"name": "Row", "unit_price": 10, "vat_rate": "0"}],
        });
        self.api.post("/v1/invoices", body).await.expect(201).at("/data")
    }

    async fn until_runs(&self, status: &str, count: u64) {
        eventually(&format!("{count} runs are {status}"), async || {
            let failed = self.api.get("/v1/automation/runs?status=failed").await.expect(200);
            assert_eq!(failed.at("/meta/total"), 0, "{}", failed.at("/data"));
            let runs = self.api.get(&format!("/v1/automation/runs?status={status}")).await.expect(200);
            runs.at("/meta/total") == count
        })
        .await;
    }

    /// The steps of the run of a flow: id, kind and outcome.
    async fn steps(&self, flow: &str) -> Vec<(String, String, String)> {
        let runs = self.api.get("/v1/automation/runs").await.expect(200).at("/data");
        let run = runs.as_array().unwrap().iter().find(|run| run["flow_name"] == flow).unwrap();
        let path = format!("/v1/automation/runs/{}", run["id"].as_str().unwrap());
        let run = self.api.get(&path).await.expect(200).at("/data");
        assert_eq!((&run["status"], &run["trigger_key"]), (&json!("success"), &json!("invoice.late")));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let steps = run["meta"]["steps"].as_array().unwrap().iter().map(|step| {
            assert!(step["started_at"].is_string() && step["ended_at"].is_string(), "{step}");
            assert_eq!((&step["attempts"], &step["error"]), (&json!(1), &json!("")), "{step}");
            (text(&step["id"]), text(&step["kind"]), text(&step["outcome"]))
        });
        steps.collect()
    }
}

fn done(steps: &[(&str, &str)]) -> Vec<(String, String, String)> {
    steps.iter().map(|(id, kind)| ((*id).to_owned(), (*kind).to_owned(), "done".to_owned())).collect()
}

#[tokio::test]
async fn an_invoice_that_becomes_late_is_followed_up_by_itself() {
    let chain = Chain::start().await;
    let endpoint_secret = chain.prepare().await;
    let invoice = chain.invoice().await;
    let number = invoice["number"].as_str().unwrap();
    chain.mesh.clock.advance(TimeDelta::days(15));
    run_scans(&chain.mesh.billing, &chain.caller()).await;
    chain.until_runs("waiting", 2).await;
    assert_eq!(chain.api.get("/v1/events?type=invoice.late").await.expect(200).at("/meta/total"), 1);
    assert!(chain.smtp.received().is_empty(), "there is patience first");
    chain.mesh.clock.advance(TimeDelta::days(3));
    chain.until_runs("success", 2).await;

    let steps =
        [("patience", "wait"), ("client", "call"), ("remind", "mail"), ("task", "call"), ("tell", "http")];
    assert_eq!(chain.steps("Late invoice").await, done(&steps));
    let steps = [
        ("patience", "wait"),
        ("invoice", "call"),
        ("client", "call"),
        ("still_open", "when"),
        ("remind", "call"),
    ];
    assert_eq!(chain.steps(READY_MADE).await, done(&steps));

    eventually("both mails have come", async || chain.smtp.received().len() == 2).await;
    let mails = chain.smtp.received();
    assert!(mails.iter().all(|mail| mail.recipients == ["sanne@korenbloem.example"]));
    let has = |subject: &str| mails.iter().any(|mail| mail.message.contains(&format!("Subject: {subject}")));
    assert!(
        has(&format!("Your invoice {number}")) && has(&format!("Reminder: invoice {number}")),
        "{mails:?}"
    );
    let attached = format!("filename=\"{number}.pdf\"");
    assert_eq!(mails.iter().filter(|mail| mail.message.contains(&attached)).count(), 1);

    let task = chain.api.get("/v1/tasks").await.expect(200).at("/data/0");
    assert_eq!(task["title"], format!("Call about {number}"));
    chain.check_requests(number, &task, &endpoint_secret).await;
}

impl Chain {
    /// One from the flow and one for the endpoint, each signed with its own secret.
    async fn check_requests(&self, number: &str, task: &Value, endpoint_secret: &str) {
        eventually("both requests have come", async || self.got.lock().unwrap().len() == 2).await;
        let request = self.caller().request(GetSigningSecretRequest {});
        let mut webhooks = WebhookServiceClient::new(self.mesh.automation.channel());
        let account_secret = webhooks.get_signing_secret(request).await.unwrap().into_inner().secret;
        for (path, headers, body) in self.got.lock().unwrap().iter() {
            let sent: Value = serde_json::from_str(body).unwrap();
            if path == "/flow" {
                assert!(is_signed(headers, body, &account_secret));
                assert_eq!(sent, json!({"number": number, "task": task["id"]}));
            } else {
                assert!(is_signed(headers, body, endpoint_secret));
                assert_eq!(
                    (&sent["type"], &sent["data"]["number"]),
                    (&json!("invoice.late"), &json!(number))
                );
            }
        }
        let endpoint = self.api.get("/v1/webhook-endpoints").await.expect(200).at("/data/0/id");
        let deliveries = format!("/v1/webhook-endpoints/{}/deliveries", endpoint.as_str().unwrap());
        eventually("the delivery is noted", async || {
            self.api.get(&deliveries).await.expect(200).at("/data/0/status") == "delivered"
        })
        .await;
    }
}
