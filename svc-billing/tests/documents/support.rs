//! A gateway with clients and billing behind it, an account to work in, and short words for what tests do all the time.

use std::path::Path;

use chassis_base::{Account, Clock};
use chassis_service::Service;
use chassis_testing::{Started, TestCaller, TestDatabase};
use gateway::testing::{Answer, Api, TestGateway};
use http::Method;
use proto::work::file_service_client::FileServiceClient;
use proto::work::{FileInput, UploadFileRequest};
use serde_json::{Value, json};
use svc_billing::Billing;
use svc_relations::Relations;
use svc_work::Work;
use tempfile::TempDir;
use tonic::transport::Channel;

/// Making a PDF takes long without optimisation, and longer beside other tests.
const DEADLINE: [&str; 2] = ["--deadline-ms", "120000"];
const SCOPES: [&str; 6] =
    ["invoices.read", "invoices.write", "relations.read", "relations.write", "files.read", "files.write"];

pub(crate) struct World {
    pub database: TestDatabase,
    pub clock: Clock,
    gateway: TestGateway,
    files: TempDir,
    billing: Started,
    work: Option<Started>,
    _relations: Started,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_mail("").await
    }

    /// With background work, and no server for mail.
    pub(crate) async fn working() -> Self {
        Self::with_mail("smtp://127.0.0.1:9").await
    }

    /// With background work: mail goes to this server.
    pub(crate) async fn mailing(smtp_url: &str) -> Self {
        Self::with_mail(smtp_url).await
    }

    /// The same, with the service that keeps the files of the accounts.
    pub(crate) async fn mailing_files(smtp_url: &str) -> Self {
        Self::build(smtp_url, true).await
    }

    /// Without a server nothing works in the background, so that queues stay where they can be looked at.
    async fn with_mail(smtp_url: &str) -> Self {
        Self::build(smtp_url, false).await
    }

    async fn build(smtp_url: &str, keeps_files: bool) -> Self {
        let mut schemas = vec![
            (gateway::NAME, &*gateway::MIGRATIONS),
            ("relations", Relations::migrations()),
            ("billing", Billing::migrations()),
        ];
        schemas.extend(keeps_files.then(|| ("work", Work::migrations())));
        let database = TestDatabase::new(&schemas).await;
        let clock = chassis_testing::clock();
        let files = tempfile::tempdir().unwrap();
        let folder = files.path().to_str().unwrap();
        let relations = chassis_testing::start_with::<Relations>(database.url(), &clock, &DEADLINE).await;
        let mut peers = vec![format!("relations={}", relations.url())];
        let work = if keeps_files {
            let work =
                chassis_testing::start_with::<Work>(database.url(), &clock, &["--files-dir", folder]).await;
            peers.push(format!("work={}", work.url()));
            Some(work)
        } else {
            None
        };
        let known = peers.join(",");
        let flags = ["--peers", &known, "--files-dir", folder];
        let flags = [&flags[..], &DEADLINE].concat();
        let billing = if smtp_url.is_empty() {
            chassis_testing::start_with::<Billing>(database.url(), &clock, &flags).await
        } else {
            let flags = [&flags[..], &["--smtp-url", smtp_url]].concat();
            chassis_testing::start_working::<Billing>(database.url(), &clock, &flags).await
        };
        peers.push(format!("billing={}", billing.url()));
        let flags = [&["--rate-per-minute", "0"][..], &DEADLINE].concat();
        let gateway = TestGateway::start(&database, &clock, &peers, &flags).await;
        Self { database, clock, gateway, files, billing, work, _relations: relations }
    }

    /// An account of its own, with a key that may do everything here.
    pub(crate) async fn user(&self) -> User {
        let account = self.gateway.account(&format!("Account {}", self.clock.id())).await;
        let api = self.gateway.api(&account, &SCOPES).await;
        User { api, account }
    }

    /// Works in the same account with another key.
    pub(crate) async fn user_with(&self, account: &Account, scopes: &[&str]) -> User {
        User { api: self.gateway.api(account, scopes).await, account: account.clone() }
    }

    /// Uploads a file; its id.
    pub(crate) async fn upload(&self, user: &User, name: &str, content: &[u8]) -> String {
        let file = FileInput { name: name.to_owned(), content_type: String::new() };
        let mut parts = vec![UploadFileRequest { file: Some(file), ..UploadFileRequest::default() }];
        let data = content.chunks(1 << 20).map(|data| data.to_vec().into());
        parts.extend(data.map(|data| UploadFileRequest { data, file: None }));
        let mut files = FileServiceClient::new(self.work.as_ref().unwrap().channel());
        let request = TestCaller::mesh(&user.account, &self.clock).request(futures::stream::iter(parts));
        files.upload_file(request).await.unwrap().into_inner().data.unwrap().id
    }

    /// Calls billing itself.
    pub(crate) fn channel(&self) -> Channel {
        self.billing.channel()
    }

    /// Where billing keeps its files.
    pub(crate) fn files(&self) -> &Path {
        self.files.path()
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
        self.client_with(json!({"company_name": name})).await
    }

    pub(crate) async fn client_with(&self, body: Value) -> String {
        id(&self.api.post("/v1/clients", body).await.expect(201).at("/data"))
    }

    /// A new document; `list` is `invoices`, `quotes` or `workorders`.
    pub(crate) async fn create(&self, list: &str, body: Value) -> Value {
        self.api.post(&format!("/v1/{list}"), body).await.expect(201).at("/data")
    }

    /// A draft invoice of rows that cost so much each, without VAT, so that sums are easy to see.
    pub(crate) async fn draft(&self, client: &str, prices: &[i64]) -> Value {
        self.create("invoices", json!({"title": "Bread", "client_id": client, "rows": priced(prices)})).await
    }

    /// The same, final.
    pub(crate) async fn invoice(&self, client: &str, prices: &[i64]) -> Value {
        let body = json!({"title": "Bread", "client_id": client, "rows": priced(prices), "generation_mode": "final"});
        self.create("invoices", body).await
    }

    pub(crate) async fn get(&self, list: &str, document: &Value) -> Value {
        self.api.get(&path(list, document)).await.expect(200).at("/data")
    }

    /// Does something with a document, such as `finalize`.
    pub(crate) async fn act(&self, list: &str, document: &Value, action: &str, body: Value) -> Answer {
        self.api.post(&format!("{}/{action}", path(list, document)), body).await
    }

    pub(crate) async fn finalize(&self, list: &str, document: &Value) -> Value {
        self.act(list, document, "finalize", json!({})).await.expect(200).at("/data")
    }

    pub(crate) async fn credit(&self, invoice: &Value, body: Value) -> Value {
        self.act("invoices", invoice, "credit", body).await.expect(201).at("/data")
    }

    pub(crate) async fn pay(&self, invoice: &Value, body: Value) -> Value {
        self.act("invoices", invoice, "payments", body).await.expect(201).at("/data")
    }

    pub(crate) async fn patch(&self, list: &str, document: &Value, body: Value) -> Value {
        self.api.patch(&path(list, document), body).await.expect(200).at("/data")
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.api.send(Method::DELETE, path, &[], "").await
    }

    /// The total of a list, which may have a query.
    pub(crate) async fn total(&self, list: &str) -> Value {
        self.api.get(&format!("/v1/{list}")).await.expect(200).at("/meta/total")
    }
}

pub(crate) fn id(thing: &Value) -> String {
    thing["id"].as_str().unwrap().to_owned()
}

pub(crate) fn path(list: &str, document: &Value) -> String {
    format!("/v1/{list}/{}", id(document))
}

pub(crate) fn row(name: &str, quantity: i64, unit_price: i64) -> Value {
    json!({"name": name, "quantity": quantity, "unit_price": unit_price, "vat_rate": "0"})
}

/// Rows of one piece each, without VAT.
pub(crate) fn priced(prices: &[i64]) -> Vec<Value> {
    prices.iter().map(|price| row("Row", 1, *price)).collect()
}

/// The settlement of an invoice: status, open amount, overpaid amount.
pub(crate) fn settlement(document: &Value) -> (String, f64, f64) {
    let number = |name: &str| document["meta"][name].as_f64().unwrap();
    (
        document["payment_status"].as_str().unwrap().to_owned(),
        number("open_amount"),
        number("overpaid_amount"),
    )
}

/// What is expected of [`settlement`].
pub(crate) fn settled(status: &str, open: f64, overpaid: f64) -> (String, f64, f64) {
    (status.to_owned(), open, overpaid)
}

/// The code of a refusal for the state of things.
pub(crate) fn conflict(answer: Answer) -> String {
    answer.expect(409).at("/code").as_str().unwrap().to_owned()
}
