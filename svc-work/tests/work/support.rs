//! A user, who works in one account, and helpers for what many tests do.

use chassis_base::Account;
use chassis_testing::TestCaller;
use futures::stream;
use gateway::testing::{Answer, Api};
use http::Method;
use proto::work::file_service_client::FileServiceClient;
use proto::work::hour_service_client::HourServiceClient;
use proto::work::note_service_client::NoteServiceClient;
use proto::work::project_service_client::ProjectServiceClient;
use proto::work::task_service_client::TaskServiceClient;
use proto::work::{File, FileInput, UploadFileRequest};
use serde_json::{Value, json};
use tonic::transport::Channel;
use tonic::{Request, Status};

/// Works in one account.
#[derive(Clone)]
pub(crate) struct User {
    pub api: Api,
    pub account: Account,
    pub token: TestCaller,
    pub work: Channel,
}

impl User {
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        self.token.request(message)
    }

    pub(crate) fn projects(&self) -> ProjectServiceClient<Channel> {
        ProjectServiceClient::new(self.work.clone())
    }

    pub(crate) fn hours(&self) -> HourServiceClient<Channel> {
        HourServiceClient::new(self.work.clone())
    }

    pub(crate) fn tasks(&self) -> TaskServiceClient<Channel> {
        TaskServiceClient::new(self.work.clone())
    }

    pub(crate) fn notes(&self) -> NoteServiceClient<Channel> {
        NoteServiceClient::new(self.work.clone())
    }

    pub(crate) fn files(&self) -> FileServiceClient<Channel> {
        FileServiceClient::new(self.work.clone())
    }

    /// Creates a company with this name. Returns its id.
    pub(crate) async fn client(&self, name: &str) -> String {
        id(&self.api.post("/v1/clients", json!({"company_name": name})).await.expect(201).at("/data"))
    }

    /// Creates a record in a list.
    pub(crate) async fn create(&self, list: &str, body: Value) -> Value {
        self.api.post(&format!("/v1/{list}"), body).await.expect(201).at("/data")
    }

    pub(crate) async fn project(&self, name: &str) -> Value {
        self.create("projects", json!({"name": name})).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.api.get(path).await.expect(200).json()
    }

    pub(crate) async fn total(&self, path: &str) -> Value {
        self.get(path).await["meta"]["total"].clone()
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.api.send(Method::DELETE, path, &[], "").await
    }

    /// Uploads a file in one part.
    pub(crate) async fn upload(&self, name: &str, content_type: &str, content: &[u8]) -> File {
        let file = FileInput { name: name.to_owned(), content_type: content_type.to_owned() };
        let part = UploadFileRequest { file: Some(file), data: content.to_vec().into() };
        self.upload_parts(vec![part]).await.unwrap()
    }

    pub(crate) async fn upload_parts(&self, parts: Vec<UploadFileRequest>) -> Result<File, Status> {
        let request = self.request(stream::iter(parts));
        Ok(self.files().upload_file(request).await?.into_inner().data.unwrap())
    }
}

/// The path of a link without the address of the gateway.
pub(crate) fn path_of(url: &str) -> String {
    let (_, rest) = url.split_once("://").unwrap();
    format!("/{}", rest.split_once('/').unwrap().1)
}

pub(crate) fn id(thing: &Value) -> String {
    thing["id"].as_str().unwrap().to_owned()
}

/// The code of a problem in a gRPC status.
pub(crate) fn problem(status: &Status) -> String {
    chassis_testing::error_info(status).reason
}
