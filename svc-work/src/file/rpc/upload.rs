//! Receives an upload: collects its parts up to the limit, stores the bytes, then writes the row. A file of its
//! own, because the request is a stream.

use chassis_data::Tx;
use chassis_rpc::{Call, Context};
use chassis_work::files::Key;
use proto::api::Fault;
use proto::work::{FileInput, UploadFileRequest, UploadFileResponse};
use proto::{At, Check, Faults};
use sha2::{Digest, Sha256};
use tonic::{Code, Request, Response, Status, Streaming};

use super::FilesRpc;
use crate::error::Error;
use crate::file::{DownloadLinks, Record, Source, operations, rules};

/// The folder of uploads among the files of this service.
const AREA: &str = "uploads";
/// The source of uploads, as it is stored and shown.
const SOURCE: &str = "upload";

pub(super) async fn receive(
    FilesRpc { db, files, links, slots }: &FilesRpc,
    request: Request<Streaming<UploadFileRequest>>,
) -> Result<Response<UploadFileResponse>, Status> {
    let (context, parts) = Context::take(request)?;
    let _slot = slots.enter(context.account_id())?;
    let Upload { file, bytes, faults } = collect(parts, files.max_bytes()).await?;
    let account = context.account_id();
    let id = context.clock.id();
    let key = Key::new(account, AREA, id);
    // An idempotency key is compared with the content of the upload, however it was cut into parts. Its hash stands for
    // the bytes, which need not be kept in memory for that.
    let input = UploadFileRequest { file: Some(file.clone()), data: Sha256::digest(&bytes).to_vec().into() };
    let now = context.clock.now();
    let record = Record {
        id,
        version: 1,
        name: rules::safe_name(&file.name),
        content_type: rules::media_type(&file.content_type, &file.name),
        size: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
        key: files.reference(&key),
        source: Source { kind: SOURCE.to_owned(), id: None, version: None },
        created_at: now,
        updated_at: now,
    };
    if faults.is_empty() && !context.dry_run {
        // Announced before they are stored, so that chassis removes them after a day if no row refers to them.
        files.expect(db, context.account(), std::slice::from_ref(&key)).await?;
        files.put(&key, bytes).await?;
    }
    let uploaded = Uploaded { record: record.clone(), links: links.clone() };
    let answer = db.write_with(Call { context, input, faults }, uploaded, create).await;
    if is_unlisted(&answer, &record)
        && let Err(error) = operations::remove_bytes(files, account, &record.key).await
    {
        tracing::warn!(%error, key = record.key, "removal of the bytes of an upload deferred");
    }
    answer
}

/// Whether certainly no row refers to the bytes: the answer is that of an earlier upload with the same idempotency key,
/// or the upload was refused. After other errors the row may have been written; if it was not, chassis removes the bytes.
fn is_unlisted(answer: &Result<Response<UploadFileResponse>, Status>, record: &Record) -> bool {
    match answer {
        Ok(answer) => answer.get_ref().data.as_ref().is_some_and(|file| file.id != record.id.to_string()),
        Err(status) => matches!(status.code(), Code::InvalidArgument | Code::FailedPrecondition),
    }
}

/// An upload, joined from its parts.
struct Upload {
    file: FileInput,
    bytes: Vec<u8>,
    faults: Faults,
}

async fn collect(mut parts: Streaming<UploadFileRequest>, max_bytes: usize) -> Result<Upload, Status> {
    let mut file = None;
    let mut bytes = Vec::new();
    let mut faults = Faults::default();
    let mut is_first = true;
    while let Some(mut part) = parts.message().await? {
        part.check(&At::ROOT, None, &mut faults);
        if is_first {
            file = part.file.take();
        } else if part.file.is_some() {
            let detail = "file belongs into the first message only";
            faults.add(&At::ROOT.name("file"), Fault::Repeated, detail);
        }
        is_first = false;
        if bytes.len() + part.data.len() > max_bytes {
            return Err(Error::TooLarge(max_bytes).into());
        }
        bytes.extend_from_slice(&part.data);
    }
    if file.is_none() {
        faults.add(&At::ROOT.name("file"), Fault::Required, "file is required in the first message");
    }
    Ok(Upload { file: file.unwrap_or_default(), bytes, faults })
}

/// What the transaction needs besides the request.
struct Uploaded {
    record: Record,
    links: DownloadLinks,
}

async fn create(
    tx: &mut Tx<'_>,
    _: &UploadFileRequest,
    uploaded: &Uploaded,
) -> Result<UploadFileResponse, Error> {
    let file = operations::create(tx, &uploaded.record, &uploaded.links).await?;
    Ok(UploadFileResponse { data: Some(file) })
}
