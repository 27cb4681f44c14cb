//! A gateway with relations and support behind it, accounts, a mail server on either side, and helpers for what tests do
//! often.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use chassis_base::{Account, Clock};
use chassis_service::Service;
use chassis_service::stage::Stage;
use chassis_testing::{SmtpServer, Started, TestCaller, TestDatabase};
use chrono::TimeDelta;
use gateway::testing::{Answer, Api, TestGateway};
use lettre::address::Envelope;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use proto::support::mail_intake_service_client::MailIntakeServiceClient;
use proto::support::ticket_channel_service_client::TicketChannelServiceClient;
use proto::support::ticket_status_service_client::TicketStatusServiceClient;
use proto::support::{
    CreateTicketChannelRequest, ReceiveMailRequest, ReceiveMailResponse, TicketChannel, TicketChannelInput,
};
use proto::work::file_service_client::FileServiceClient;
use proto::work::{FileInput, UploadFileRequest};
use serde_json::{Value, json};
use svc_relations::Relations;
use svc_support::Support;
use svc_work::Work;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::Status;
use tonic::transport::Channel;

const SCOPES: [&str; 6] =
    ["tickets.read", "tickets.write", "relations.read", "relations.write", "files.read", "files.write"];
pub(crate) const DOMAIN: &str = "mail.example.com";

pub(crate) struct World {
    pub database: TestDatabase,
    pub clock: Clock,
    pub sink: Arc<SmtpServer>,
    /// The address that mail comes in at.
    pub smtp_address: SocketAddr,
    pub support: Started,
    pub relations: Started,
    work: Option<Started>,
    /// Another process of support that has taken over the background work.
    successor: Option<Started>,
    flags: Vec<String>,
    gateway: TestGateway,
    files: TempDir,
    _stop: watch::Sender<Stage>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(&[]).await
    }

    pub(crate) async fn with(flags: &[&str]) -> Self {
        Self::build(flags, false).await
    }

    /// With the service that keeps the files of the accounts.
    pub(crate) async fn keeping_files() -> Self {
        Self::build(&[], true).await
    }

    async fn build(flags: &[&str], keeps_files: bool) -> Self {
        let mut schemas = vec![
            (gateway::NAME, &*gateway::MIGRATIONS),
            ("relations", Relations::migrations()),
            ("support", Support::migrations()),
        ];
        schemas.extend(keeps_files.then(|| ("work", Work::migrations())));
        let database = TestDatabase::new(&schemas).await;
        let clock = chassis_testing::clock();
        let files = tempfile::tempdir().unwrap();
        let sink = Arc::new(SmtpServer::start().await);
        let folder = files.path().to_str().unwrap();
        let relations = chassis_testing::start::<Relations>(database.url(), &clock).await;
        let mut peers = vec![format!("relations={}", relations.url())];
        let work = if keeps_files {
            let work =
                chassis_testing::start_with::<Work>(database.url(), &clock, &["--files-dir", folder]).await;
            peers.push(format!("work={}", work.url()));
            Some(work)
        } else {
            None
        };
        let (known, smtp) = (peers.join(","), sink.url());
        let own = ["--peers", &known, "--files-dir", folder, "--smtp-url", &smtp, "--mail-domain", DOMAIN];
        let own = [&own[..], flags].concat();
        let flags = own.iter().map(|flag| (*flag).to_owned()).collect();
        let (support, service) =
            chassis_testing::start_working_service::<Support>(database.url(), &clock, &own).await;
        let (stop, stopped) = watch::channel(Stage::Running);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let smtp_address = listener.local_addr().unwrap();
        tokio::spawn(svc_support::smtp::serve(listener, service.mail_receiver(), stopped));
        peers.push(format!("support={}", support.url()));
        let gateway = TestGateway::start(&database, &clock, &peers, &["--rate-per-minute", "0"]).await;
        Self {
            database,
            clock,
            sink,
            smtp_address,
            support,
            relations,
            work,
            successor: None,
            flags,
            gateway,
            files,
            _stop: stop,
        }
    }

    /// The background work ends, time passes, and another process takes it over: workers that poll rarely poll when they
    /// start.
    pub(crate) async fn resume_after(&mut self, time: TimeDelta) {
        self.successor.as_mut().unwrap_or(&mut self.support).stop_working().await;
        self.clock.advance(time);
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        let successor =
            chassis_testing::start_working::<Support>(self.database.url(), &self.clock, &flags).await;
        self.successor = Some(successor);
    }

    /// A new account, with a key that has all scopes of this service.
    pub(crate) async fn user(&self) -> User {
        let account = self.gateway.account(&format!("Account {}", self.clock.id())).await;
        self.user_with(&account, &SCOPES).await
    }

    pub(crate) async fn user_with(&self, account: &Account, scopes: &[&str]) -> User {
        let api = self.gateway.api(account, scopes).await;
        let mesh = TestCaller::mesh(account, &self.clock);
        let work = self.work.as_ref().map(Started::channel);
        User { api, mesh, channel: self.support.channel(), work }
    }

    /// The files of the accounts cannot be reached any more.
    pub(crate) fn stop_keeping_files(&mut self) {
        self.work = None;
    }

    /// The folder of the file store.
    pub(crate) fn files(&self) -> &Path {
        self.files.path()
    }

    /// Hands a mail over as a mail server does.
    pub(crate) async fn send(&self, from: &str, to: &[&str], mail: &str) -> Result<(), String> {
        let url = format!("smtp://{}", self.smtp_address);
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(&url).unwrap().build();
        let from = (!from.is_empty()).then(|| from.parse().unwrap());
        let to = to.iter().map(|address| address.parse().unwrap()).collect();
        let envelope = Envelope::new(from, to).unwrap();
        transport.send_raw(&envelope, mail.as_bytes()).await.map(drop).map_err(|error| error.to_string())
    }
}

/// Works in one account.
#[derive(Clone)]
pub(crate) struct User {
    pub api: Api,
    pub mesh: TestCaller,
    channel: Channel,
    work: Option<Channel>,
}

impl User {
    pub(crate) fn account(&self) -> &Account {
        &self.mesh.account
    }

    pub(crate) fn statuses(&self) -> TicketStatusServiceClient<Channel> {
        TicketStatusServiceClient::new(self.channel.clone())
    }

    pub(crate) fn channels(&self) -> TicketChannelServiceClient<Channel> {
        TicketChannelServiceClient::new(self.channel.clone())
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    pub(crate) async fn add_channel(&self, input: TicketChannelInput) -> Result<TicketChannel, Status> {
        let request = self.mesh.request(CreateTicketChannelRequest { channel: Some(input) });
        Ok(self.channels().create_ticket_channel(request).await?.into_inner().data.unwrap())
    }

    /// Receives a mail over gRPC.
    pub(crate) async fn receive(&self, mail: &str) -> ReceiveMailResponse {
        self.try_receive(ReceiveMailRequest {
            message: mail.to_owned().into_bytes().into(),
            ..ReceiveMailRequest::default()
        })
        .await
        .unwrap()
    }

    pub(crate) async fn try_receive(
        &self,
        request: ReceiveMailRequest,
    ) -> Result<ReceiveMailResponse, Status> {
        let mut intake = MailIntakeServiceClient::new(self.channel.clone());
        Ok(intake.receive_mail(self.mesh.request(request)).await?.into_inner())
    }

    pub(crate) async fn client(&self, body: Value) -> String {
        let answer = self.api.post("/v1/clients", body).await.expect(201);
        answer.at("/data/id").as_str().unwrap().to_owned()
    }

    pub(crate) async fn ticket(&self, body: Value) -> Value {
        self.api.post("/v1/tickets", body).await.expect(201).at("/data")
    }

    /// A ticket of Ann's.
    pub(crate) async fn ann(&self) -> Value {
        self.ticket(json!({"subject": "Bread", "client_name": "Ann", "client_email": "ann@client.example"}))
            .await
    }

    pub(crate) async fn get(&self, id: &str) -> Value {
        self.api.get(&format!("/v1/tickets/{id}")).await.expect(200).at("/data")
    }

    pub(crate) async fn patch(&self, id: &str, body: Value) -> Answer {
        self.api.patch(&format!("/v1/tickets/{id}"), body).await
    }

    pub(crate) async fn messages(&self, id: &str) -> Vec<Value> {
        let answer = self.api.get(&format!("/v1/tickets/{id}/messages")).await.expect(200);
        answer.at("/data").as_array().unwrap().clone()
    }

    pub(crate) async fn write(&self, id: &str, body: Value) -> Answer {
        self.api.post(&format!("/v1/tickets/{id}/messages"), body).await
    }

    pub(crate) async fn reply(&self, id: &str, text: &str) -> Value {
        self.write(id, json!({"body": text})).await.expect(201).at("/data")
    }

    /// Uploads a file; its id.
    pub(crate) async fn upload(&self, name: &str, content: &[u8]) -> String {
        let file = FileInput { name: name.to_owned(), content_type: String::new() };
        let mut parts = vec![UploadFileRequest { file: Some(file), ..UploadFileRequest::default() }];
        let data = content.chunks(1 << 20).map(|data| data.to_vec().into());
        parts.extend(data.map(|data| UploadFileRequest { data, file: None }));
        let mut files = FileServiceClient::new(self.work.clone().unwrap());
        let uploaded = files.upload_file(self.mesh.request(futures::stream::iter(parts))).await.unwrap();
        uploaded.into_inner().data.unwrap().id
    }

    /// The inbound address of the channel that every account starts with.
    pub(crate) async fn inbound(&self) -> String {
        let channels = self.api.get("/v1/ticket-channels").await.expect(200);
        channels.at("/data/0/inbound_email").as_str().unwrap().to_owned()
    }
}

/// The text of an entry of JSON.
pub(crate) fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
}

/// A mail from Ann.
pub(crate) fn mail(id: &str, more: &str, subject: &str, body: &str) -> String {
    format!(
        "From: Ann <ann@client.example>\r\nTo: support@bakery.example\r\nMessage-ID: <{id}>\r\nSubject: {subject}\r\n\
         {more}\r\n{body}\r\n"
    )
}

/// The value of a header, unfolded.
pub(crate) fn header(message: &str, name: &str) -> Option<String> {
    let (head, _) = message.split_once("\r\n\r\n")?;
    let head = head.replace("\r\n ", " ").replace("\r\n\t", " ");
    let found = head.split("\r\n").filter_map(|line| line.split_once(':'));
    let mut found = found.filter(|(found, _)| found.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim().to_owned())
}
