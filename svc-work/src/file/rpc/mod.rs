//! `FileService`: parses requests, calls the operations, answers. A folder, because uploads and downloads stream.

pub(crate) mod download;
mod read;
mod upload;

use std::sync::Arc;

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_data::list::Selection;
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use chassis_work::Files;
use chassis_work::files::Messages;
use proto::api::WholeListMeta;
use proto::work::file_service_server::FileService;
use proto::work::{
    DeleteFileRequest, DeleteFileResponse, GetFileRequest, GetFileResponse, ListFilesRequest,
    ListFilesResponse, ReadFileRequest, ReadFileResponse, UploadFileRequest, UploadFileResponse,
};
use tonic::{Request, Response, Status, Streaming};

use super::slots::FileSlots;
use super::store::Filter;
use super::{DownloadLinks, operations, rules, store};
use crate::error::Error;

const NOT_FOUND: Error = Error::NotFound("file");
/// How many files an answer lists when the request asks for no page.
const MAX_LISTED: i64 = 10_000;

pub(crate) struct FilesRpc {
    pub db: Db,
    pub files: Files,
    pub links: DownloadLinks,
    pub slots: Arc<FileSlots>,
}

#[tonic::async_trait]
impl FileService for FilesRpc {
    async fn list_files(
        &self,
        request: Request<ListFilesRequest>,
    ) -> Result<Response<ListFilesResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let account = context.account_id();
        let now = context.clock.now();
        let filter = Filter {
            selection: Selection::new(context.account(), &input),
            kind: rules::kind_name(input.kind()),
            source: id::filter(&input.source_id),
        };
        let page = match (input.page, input.per_page) {
            (None, None) => Page::whole(MAX_LISTED),
            (page, per_page) => Page::new(page, per_page),
        };
        let (records, meta) =
            self.db.read(async |connection| store::list(connection, account, &filter, page).await).await?;
        let data = records.into_iter().map(|record| self.links.message(account, record, now)).collect();
        Ok(Response::new(ListFilesResponse {
            data,
            meta: Some(WholeListMeta { total: meta.total, cut: meta.cut }),
        }))
    }

    async fn get_file(&self, request: Request<GetFileRequest>) -> Result<Response<GetFileResponse>, Status> {
        // `valid` is not called: a malformed id is answered as not found, and no other field can be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let account = context.account_id();
        let now = context.clock.now();
        let id = id::parse(&input.id).ok_or(NOT_FOUND)?;
        let found = self.db.read(async |connection| store::find(connection, account, id).await).await?;
        let data = self.links.message(account, found.ok_or(NOT_FOUND)?, now);
        Ok(Response::new(GetFileResponse { data: Some(data) }))
    }

    async fn delete_file(
        &self,
        request: Request<DeleteFileRequest>,
    ) -> Result<Response<DeleteFileResponse>, Status> {
        let call = Call::open(request)?;
        let (account, dry_run) = (call.context.account().clone(), call.context.dry_run);
        let found = self
            .db
            .read(async |connection| {
                let found = match id::parse(&call.input.id) {
                    Some(id) => store::find(connection, account.id, id).await?,
                    None => None,
                };
                Ok::<_, Error>(found)
            })
            .await?;
        let delete = async |tx: &mut Tx<'_>, input: &DeleteFileRequest| {
            operations::delete(tx, &input.id).await?;
            Ok::<_, Error>(DeleteFileResponse {})
        };
        let answer = self.db.write(call, delete).await?;
        if let Some(record) = found.filter(|_| !dry_run) {
            operations::remove_bytes_now(&self.db, &self.files, &account, &record).await;
        }
        Ok(answer)
    }

    type ReadFileStream = Messages<ReadFileResponse>;

    async fn read_file(
        &self,
        request: Request<ReadFileRequest>,
    ) -> Result<Response<Messages<ReadFileResponse>>, Status> {
        read::read(&self.db, &self.files, request).await
    }

    async fn upload_file(
        &self,
        request: Request<Streaming<UploadFileRequest>>,
    ) -> Result<Response<UploadFileResponse>, Status> {
        upload::receive(self, request).await
    }
}
