//! A gateway with work and the services that it asks behind it, an account to work in, and short words for what tests do
//! all the time.

use std::path::Path;

use chassis::testing::{self, Started, TestCaller, TestDatabase};
use chassis::{Account, Clock, Service};
use futures::stream;
use gateway::testing::{Answer, Api, TestGateway};
use http::Method;
use prost::Message;
use proto::google::rpc;
use proto::work::file_service_client::FileServiceClient;
use proto::work::hour_service_client::HourServiceClient;
use proto::work::project_service_client::ProjectServiceClient;
use proto::work::{File, FileInput, UploadFileRequest};
use serde_json::{Value, json};
use svc_billing::Billing;
use svc_crm::Crm;
use svc_relations::Relations;
use svc_work::Work;
use tempfile::TempDir;
use tonic::transport::Channel;
use tonic::{Request, Status};

/// A listener that is never reached, so that its events stay where they can be looked at.
const LISTENER: [&str; 2] = ["--listeners", "x=http://127.0.0.1:1"];
/// Making a PDF takes long without optimisation, and longer beside other tests.
const DEADLINE: [&str; 2] = ["--deadline-ms", "120000"];
const SCOPES: [&str; 14] = [
    "projects.read",
    "projects.write",
    "tasks.read",
    "tasks.write",
    "notes.read",
    "notes.write",
    "files.read",
    "files.write",
    "relations.read",
    "relations.write",
    "invoices.read",
    "invoices.write",
    "deals.read",
    "deals.write",
];

pub struct World {
    pub database: TestDatabase,
    pub clock: Clock,
    pub work: Started,
    pub gateway: TestGateway,
    files: TempDir,
    others: Vec<Started>,
}

impl World {
    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    /// With more settings of work.
    pub async fn with(flags: &[&str]) -> Self {
        let (database, clock, files) = Self::ground().await;
        let relations = testing::start::<Relations>(database.url(), &clock).await;
        let relations_peer = format!("relations={}", relations.url());
        let crm = testing::start_with::<Crm>(database.url(), &clock, &["--peers", &relations_peer]).await;
        let folder = files.path().to_str().unwrap();
        let common = ["--files-dir", folder, DEADLINE[0], DEADLINE[1]];
        let billing_flags = [&["--peers", &relations_peer][..], &common, &LISTENER].concat();
        let billing = testing::start_with::<Billing>(database.url(), &clock, &billing_flags).await;
        let peers = [relations_peer, format!("billing={}", billing.url()), format!("crm={}", crm.url())];
        // A test may name peers of its own.
        let known = peers.join(",");
        let mut work_flags = [&common[..], &LISTENER, flags].concat();
        if !flags.contains(&"--peers") {
            work_flags.extend(["--peers", known.as_str()]);
        }
        let work = testing::start_with::<Work>(database.url(), &clock, &work_flags).await;
        let peers = [&peers[..], &[format!("work={}", work.url())]].concat();
        let gateway_flags =
            [&["--rate-per-minute", "0", "--public-rate-per-minute", "0"][..], &DEADLINE].concat();
        let gateway = TestGateway::start(&database, &clock, &peers, &gateway_flags).await;
        Self { database, clock, work, gateway, files, others: vec![relations, billing, crm] }
    }

    async fn ground() -> (TestDatabase, Clock, TempDir) {
        let database = TestDatabase::new(&[
            (gateway::NAME, &gateway::MIGRATIONS),
            ("relations", Relations::migrations()),
            ("billing", Billing::migrations()),
            ("crm", Crm::migrations()),
            ("work", Work::migrations()),
        ])
        .await;
        (database, testing::clock(), tempfile::tempdir().unwrap())
    }

    /// Background work of work itself, until the value is dropped.
    pub async fn working(&self) -> Started {
        let flags = ["--files-dir", self.files().to_str().unwrap()];
        testing::start_working::<Work>(self.database.url(), &self.clock, &flags).await
    }

    /// Another work with its background work and all services that it asks, until the value is dropped.
    pub async fn scanning(&self) -> Started {
        self.scanning_with(&self.others[2].url()).await
    }

    /// The same, with crm at an address.
    pub async fn scanning_with(&self, crm: &str) -> Started {
        let peers = format!("relations={},crm={crm}", self.others[0].url());
        let flags = ["--files-dir", self.files().to_str().unwrap(), "--peers", &peers];
        let flags = [&flags[..], &LISTENER].concat();
        testing::start_working::<Work>(self.database.url(), &self.clock, &flags).await
    }

    /// A second billing, which tells work of the files that it stores.
    pub async fn telling_billing(&mut self) {
        let relations = format!("relations={}", self.others[0].url());
        let listener = format!("work={};file.stored;invoice.deleted;quote.deleted", self.work.url());
        let folder = self.files().to_str().unwrap().to_owned();
        let flags = ["--peers", &relations, "--files-dir", &folder, "--listeners", &listener];
        let flags = [&flags[..], &DEADLINE].concat();
        let billing = testing::start_working::<Billing>(self.database.url(), &self.clock, &flags).await;
        let peers = [
            relations,
            format!("billing={}", billing.url()),
            format!("work={}", self.work.url()),
            format!("crm={}", self.others[2].url()),
        ];
        let gateway_flags =
            [&["--rate-per-minute", "0", "--public-rate-per-minute", "0"][..], &DEADLINE].concat();
        self.gateway = TestGateway::start(&self.database, &self.clock, &peers, &gateway_flags).await;
        self.others.push(billing);
    }

    /// A second crm, which tells work of the deals that it deletes.
    pub async fn telling_crm(&self) -> Started {
        let relations = format!("relations={}", self.others[0].url());
        let listener = format!("work={};deal.deleted", self.work.url());
        let flags = ["--peers", &relations, "--listeners", &listener];
        testing::start_working::<Crm>(self.database.url(), &self.clock, &flags).await
    }

    /// An account of its own, with a key that may do everything here.
    pub async fn user(&self) -> User {
        let account = self.gateway.account(&format!("Account {}", self.clock.id())).await;
        let api = self.gateway.api(&account, &SCOPES).await;
        let token = TestCaller::mesh(&account, &self.clock);
        User { api, account, token, work: self.work.channel() }
    }

    /// Where the bytes of all services are.
    pub fn files(&self) -> &Path {
        self.files.path()
    }

    /// How many files there are in the folder of the object store.
    pub fn stored(&self) -> usize {
        fn count(folder: &Path) -> usize {
            let entries = std::fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>());
            let entry = |entry: &std::fs::DirEntry| match entry.file_type() {
                Ok(kind) if kind.is_dir() => count(&entry.path()),
                _ => 1,
            };
            entries.unwrap_or_default().iter().map(entry).sum()
        }
        count(self.files())
    }
}

/// Works in one account.
#[derive(Clone)]
pub struct User {
    pub api: Api,
    pub account: Account,
    pub token: TestCaller,
    work: Channel,
}

impl User {
    pub fn request<T>(&self, message: T) -> Request<T> {
        self.token.request(message)
    }

    pub fn projects(&self) -> ProjectServiceClient<Channel> {
        ProjectServiceClient::new(self.work.clone())
    }

    pub fn hours(&self) -> HourServiceClient<Channel> {
        HourServiceClient::new(self.work.clone())
    }

    pub fn files(&self) -> FileServiceClient<Channel> {
        FileServiceClient::new(self.work.clone())
    }

    /// A company with this name; its id.
    pub async fn client(&self, name: &str) -> String {
        id(&self.api.post("/v1/clients", json!({"company_name": name})).await.expect(201).at("/data"))
    }

    /// A new record of a list.
    pub async fn create(&self, list: &str, body: Value) -> Value {
        self.api.post(&format!("/v1/{list}"), body).await.expect(201).at("/data")
    }

    pub async fn project(&self, name: &str) -> Value {
        self.create("projects", json!({"name": name})).await
    }

    pub async fn get(&self, path: &str) -> Value {
        self.api.get(path).await.expect(200).json()
    }

    pub async fn total(&self, path: &str) -> Value {
        self.get(path).await["meta"]["total"].clone()
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.api.send(Method::DELETE, path, &[], "").await
    }

    /// A file of one part.
    pub async fn upload(&self, name: &str, content_type: &str, content: &[u8]) -> File {
        let file = FileInput { name: name.to_owned(), content_type: content_type.to_owned() };
        let part = UploadFileRequest { file: Some(file), data: content.to_vec().into() };
        self.upload_parts(vec![part]).await.unwrap()
    }

    pub async fn upload_parts(&self, parts: Vec<UploadFileRequest>) -> Result<File, Status> {
        let request = self.request(stream::iter(parts));
        Ok(self.files().upload_file(request).await?.into_inner().data.unwrap())
    }
}

/// The path of a link, which begins with the address of the gateway.
pub fn path_of(url: &str) -> String {
    let (_, rest) = url.split_once("://").unwrap();
    format!("/{}", rest.split_once('/').unwrap().1)
}

pub fn id(thing: &Value) -> String {
    thing["id"].as_str().unwrap().to_owned()
}

/// What is expected of [`Answer::faults`].
pub fn places(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(place, code)| ((*place).to_owned(), (*code).to_owned())).collect()
}

/// The code of a problem that came over gRPC.
pub fn problem(status: &Status) -> String {
    detail::<rpc::ErrorInfo>(status, "google.rpc.ErrorInfo").reason
}

/// The places and codes of a refusal that came over gRPC.
pub fn faults(status: &Status) -> Vec<(String, String)> {
    assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status:?}");
    let bad = detail::<rpc::BadRequest>(status, "google.rpc.BadRequest");
    bad.field_violations.into_iter().map(|violation| (violation.field, violation.reason)).collect()
}

fn detail<M: Message + Default>(status: &Status, name: &str) -> M {
    let details = rpc::Status::decode(status.details()).unwrap().details;
    let detail = details.iter().find(|detail| detail.type_url.ends_with(name)).unwrap();
    M::decode(detail.value.as_slice()).unwrap()
}
