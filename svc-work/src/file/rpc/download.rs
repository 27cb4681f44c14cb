//! `FileDownloadService`: the content of a file for everyone who has its link, until the link expires.

use std::sync::Arc;

use chassis_base::Error;
use chassis_data::Db;
use chassis_rpc::Call;
use chassis_rpc::call::takes_stream;
use chassis_rpc::link::unknown_link;
use chassis_work::Files;
use chassis_work::files::{HttpBodies, Key};
use proto::api::{HttpBody, Problem};
use proto::work::DownloadFileRequest;
use proto::work::file_download_service_server::FileDownloadService;
use tonic::{Request, Response, Status};

use crate::file::slots::FileSlots;
use crate::file::{DownloadLinks, rules, store};

pub(crate) struct Downloads {
    pub db: Db,
    pub files: Files,
    pub links: DownloadLinks,
    /// Shared with [`FilesRpc`](super::FilesRpc).
    pub slots: Arc<FileSlots>,
}

#[tonic::async_trait]
impl FileDownloadService for Downloads {
    type DownloadFileStream = HttpBodies;

    async fn download_file(
        &self,
        request: Request<DownloadFileRequest>,
    ) -> Result<Response<HttpBodies>, Status> {
        let streamed = takes_stream(request.metadata());
        let call = Call::open(request)?;
        let pass = self.links.read(&call.input.token).ok_or_else(unknown_link)?;
        let context = self.db.admit(call, pass.account).await?.context;
        // Reported only for a link with a valid signature, so that nobody can find out by guessing which links existed.
        if context.clock.now() > pass.until {
            return Err(expired().into());
        }
        let account = context.account_id();
        let found = self.db.read(async |connection| store::find(connection, account, pass.id).await).await?;
        let record = found.ok_or_else(deleted)?;
        let key = Key::parse(account, &record.key).ok_or_else(deleted)?;
        let reading = self.files.open_file(&key).await?.ok_or_else(deleted)?;
        let headers = rules::download_headers(&record.name, &record.content_type);
        let head = HttpBody {
            content_type: headers.content_type,
            disposition: headers.disposition,
            cache_control: "private, no-store".to_owned(),
            content_security_policy: headers.policy.to_owned(),
            ..HttpBody::default()
        };
        // A file that is sent in one message is in memory as a whole.
        let _slot = if streamed { None } else { Some(self.slots.enter(account)?) };
        reading.answer(head, streamed).await
    }
}

fn expired() -> Error {
    Error::problem(Problem::NotFound, "This link has expired. Retrieve the file again for a new one.")
}

fn deleted() -> Error {
    Error::problem(Problem::NotFound, "This file has been deleted.")
}
