//! `FileDownloadService`: the content of a file for whoever has its address, as long as that is good.

use std::sync::Arc;

use chassis::call::takes_stream;
use chassis::files::{HttpBodies, Key};
use chassis::link::unknown_link;
use chassis::{Call, Db, Error, Files};
use proto::api::{HttpBody, Problem};
use proto::work::DownloadFileRequest;
use proto::work::file_download_service_server::FileDownloadService;
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};

use super::rpc::too_busy;
use super::{Addresses, rules, store};

pub struct Downloads {
    pub db: Db,
    pub files: Files,
    pub addresses: Addresses,
    /// See [`FilesRpc`](super::rpc::FilesRpc).
    pub room: Arc<Semaphore>,
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
        let pass = self.addresses.read(&call.input.token).ok_or_else(unknown_link)?;
        let context = self.db.admit(call, pass.account).await?.context;
        // Only whoever was given the address can learn that it was one.
        if context.clock.now() > pass.until {
            return Err(over().into());
        }
        let account = context.account_id();
        let mut connection = self.db.read().await?;
        let found = store::find(&mut connection, account, pass.id).await?;
        connection.done();
        let record = found.ok_or_else(gone)?;
        let key = Key::parse(account, &record.key).ok_or_else(gone)?;
        let reading = self.files.open_file(&key).await?.ok_or_else(gone)?;
        let sent = rules::sent(&record.name, &record.content_type);
        let head = HttpBody {
            content_type: sent.content_type,
            disposition: sent.disposition,
            cache_control: "private, no-store".to_owned(),
            content_security_policy: sent.policy.to_owned(),
            ..HttpBody::default()
        };
        // What goes out in one message is in memory as a whole.
        let _place = if streamed { None } else { Some(self.room.try_acquire().map_err(|_| too_busy())?) };
        reading.answer(head, streamed).await
    }
}

fn over() -> Error {
    Error::problem(Problem::NotFound, "This link has expired. Retrieve the file again for a new one.")
}

fn gone() -> Error {
    Error::problem(Problem::NotFound, "This file has been deleted.")
}
