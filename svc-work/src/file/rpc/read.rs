//! Sends the content of a file to another process of the mesh. A file of its own, because the answer is a stream.

use chassis_base::id;
use chassis_data::Db;
use chassis_rpc::Call;
use chassis_work::Files;
use chassis_work::files::{Key, Messages};
use proto::work::{ReadFileRequest, ReadFileResponse, ReadableFile};
use tonic::{Request, Response, Status};

use super::NOT_FOUND;
use crate::file::store;

pub(super) async fn read(
    db: &Db,
    files: &Files,
    request: Request<ReadFileRequest>,
) -> Result<Response<Messages<ReadFileResponse>>, Status> {
    // `valid` is not called: a malformed id is answered as not found, and no other field can be wrong.
    let Call { context, input, .. } = Call::open(request)?;
    let account = context.account_id();
    let id = id::parse(&input.id).ok_or(NOT_FOUND)?;
    let found = db.read(async |connection| store::find(connection, account, id).await).await?;
    let record = found.ok_or(NOT_FOUND)?;
    let key = Key::parse(account, &record.key).ok_or(NOT_FOUND)?;
    let reading = files.open_file(&key).await?.ok_or(NOT_FOUND)?;
    let file = ReadableFile { name: record.name, content_type: record.content_type, size: record.size };
    let head = ReadFileResponse { file: Some(file), ..ReadFileResponse::default() };
    Ok(Response::new(reading.stream(head, |data| ReadFileResponse { data, ..ReadFileResponse::default() })))
}
