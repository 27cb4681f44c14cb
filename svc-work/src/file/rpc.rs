//! `FileService`: parse, write, reply.

use std::sync::Arc;

use chassis::paging::Page;
use chassis::{Account, Call, Db, Files, Tx, error, id};
use proto::api::WholeListMeta;
use proto::work::file_service_server::FileService;
use proto::work::{
    DeleteFileRequest, DeleteFileResponse, GetFileRequest, GetFileResponse, ListFilesRequest,
    ListFilesResponse, UploadFileRequest, UploadFileResponse,
};
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status, Streaming};

use super::upload::Intake;
use super::{AUDITED, Addresses, LIST, Record, removal, store};
use crate::Error;

const UNKNOWN: Error = Error::NotFound("file");
/// Files that one answer lists at most, when no page is asked for.
const MOST_LISTED: i64 = 10_000;

pub struct FilesRpc {
    pub db: Db,
    pub files: Files,
    pub addresses: Addresses,
    /// A file is in memory as a whole while it comes, and where it goes in one message: only so many at once.
    pub room: Arc<Semaphore>,
}

#[tonic::async_trait]
impl FileService for FilesRpc {
    async fn list_files(
        &self,
        request: Request<ListFilesRequest>,
    ) -> Result<Response<ListFilesResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let (account, now) = (context.account_id(), context.clock.now());
        let page = match (input.page, input.per_page) {
            (None, None) => Page::whole(MOST_LISTED),
            (page, per_page) => Page::new(page, per_page),
        };
        let mut connection = self.db.read().await?;
        let (records, meta) = store::list(&mut connection, account, page).await?;
        connection.done();
        let data = records.into_iter().map(|record| self.addresses.show(account, record, now)).collect();
        Ok(Response::new(ListFilesResponse {
            data,
            meta: Some(WholeListMeta { total: meta.total, cut: meta.cut }),
        }))
    }

    async fn get_file(&self, request: Request<GetFileRequest>) -> Result<Response<GetFileResponse>, Status> {
        // Not `valid`: an id of an odd form is unknown, and there is nothing else to be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let (account, now) = (context.account_id(), context.clock.now());
        let id = id::parse(&input.id).ok_or(UNKNOWN)?;
        let mut connection = self.db.read().await?;
        let found = store::find(&mut connection, account, id).await?;
        connection.done();
        let data = self.addresses.show(account, found.ok_or(UNKNOWN)?, now);
        Ok(Response::new(GetFileResponse { data: Some(data) }))
    }

    async fn delete_file(
        &self,
        request: Request<DeleteFileRequest>,
    ) -> Result<Response<DeleteFileResponse>, Status> {
        let call = Call::open(request)?;
        let (account, id) = (call.context.account().clone(), id::parse(&call.input.id));
        let mut connection = self.db.read().await?;
        let found = match id {
            Some(id) => store::find(&mut connection, account.id, id).await?,
            None => None,
        };
        connection.done();
        let answer = self.db.write(call, delete).await?;
        if let Some(record) = found {
            self.remove(&account, &record).await;
        }
        Ok(answer)
    }

    async fn upload_file(
        &self,
        request: Request<Streaming<UploadFileRequest>>,
    ) -> Result<Response<UploadFileResponse>, Status> {
        let _place = self.room.try_acquire().map_err(|_| too_busy())?;
        let (db, files, addresses) = (self.db.clone(), self.files.clone(), self.addresses.clone());
        Intake { db, files, addresses }.take(request).await
    }
}

impl FilesRpc {
    /// Removes the bytes of a file that has just been deleted. What goes wrong here is done later in the background.
    async fn remove(&self, account: &Account, record: &Record) {
        let removed = match removal::remove(&self.files, account.id, &record.key).await {
            Ok(()) => self.db.note(account, &removal::Gone(vec![record.id]), removal::mark_removed).await,
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::warn!(%error, file = %record.id, "the bytes of a file are removed later");
        }
    }
}

pub fn too_busy() -> Status {
    error::unavailable("Too many files are on their way. Repeat the request in a moment.")
}

async fn delete(tx: &mut Tx<'_>, input: &DeleteFileRequest) -> Result<DeleteFileResponse, Error> {
    id::forgive(&mut tx.faults);
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let id = id::parse(&input.id).ok_or(UNKNOWN)?;
    let record = store::delete(tx.db(), account, id, now).await?.ok_or(UNKNOWN)?;
    tx.count(LIST, record.created_at, -1);
    tx.removed(AUDITED, id);
    Ok(DeleteFileResponse {})
}
