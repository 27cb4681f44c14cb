//! Taking a file in: its parts are put together up to the limit, its bytes are kept, then its row is written.

use chassis::files::Key;
use chassis::{Call, Context, Db, Files, Tx};
use proto::api::Fault;
use proto::work::{FileInput, UploadFileRequest, UploadFileResponse};
use proto::{At, Check, Faults};
use sha2::{Digest, Sha256};
use tonic::{Code, Request, Response, Status, Streaming};

use super::{Addresses, LIST, Record, Source, audit, removal, rules, store};
use crate::Error;

/// The place of uploads among the files of this service.
const AREA: &str = "uploads";
const SOURCE: &str = "upload";

pub struct Intake {
    pub db: Db,
    pub files: Files,
    pub addresses: Addresses,
}

impl Intake {
    pub async fn take(
        &self,
        request: Request<Streaming<UploadFileRequest>>,
    ) -> Result<Response<UploadFileResponse>, Status> {
        let (context, parts) = Context::take(request)?;
        let (file, bytes, faults) = collect(parts, self.files.max_bytes()).await?;
        let account = context.account_id();
        let id = context.clock.id();
        let key = Key::new(account, AREA, id);
        // What makes two uploads the same is what they are, not how they were cut into parts.
        let data = Sha256::digest(&bytes).to_vec().into();
        let record = Record {
            id,
            name: rules::safe_name(&file.name),
            content_type: rules::media_type(&file.content_type, &file.name),
            size: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            key: self.files.reference(&key),
            source: Source { kind: SOURCE.to_owned(), id: None, version: None },
            created_at: context.clock.now(),
        };
        let reference = record.key.clone();
        if faults.is_empty() {
            self.db.expect_files(&self.files, context.account(), std::slice::from_ref(&key)).await?;
            self.files.put(&key, bytes).await?;
        }
        let input = UploadFileRequest { file: Some(file), data };
        let call = Call { context, input, faults };
        let answer = self.db.write_with(call, (record, self.addresses.clone()), create).await;
        let is_other = |answer: &Response<UploadFileResponse>| {
            answer.get_ref().data.as_ref().is_some_and(|file| file.id != id.to_string())
        };
        // The first of two that are the same is the one that is listed, and what was refused is not. After other errors
        // nobody knows: what is not listed is removed in the background.
        let is_unlisted = match &answer {
            Ok(answer) => is_other(answer),
            Err(status) => matches!(status.code(), Code::InvalidArgument | Code::FailedPrecondition),
        };
        if is_unlisted && let Err(error) = removal::remove(&self.files, account, &reference).await {
            tracing::warn!(%error, key = reference, "the bytes of a repeated upload are removed later");
        }
        answer
    }
}

/// What the file is, its content, and what is wrong with it.
async fn collect(
    mut parts: Streaming<UploadFileRequest>,
    most: usize,
) -> Result<(FileInput, Vec<u8>, Faults), Status> {
    let (mut file, mut content, mut faults) = (None, Vec::new(), Faults::default());
    let mut first = true;
    while let Some(mut part) = parts.message().await? {
        part.check(&At::ROOT, None, &mut faults);
        if first {
            file = part.file.take();
        } else if part.file.is_some() {
            let detail = "file belongs into the first message only";
            faults.add(&At::ROOT.name("file"), Fault::Repeated, detail);
        }
        first = false;
        if content.len() + part.data.len() > most {
            return Err(Error::TooLarge(most).into());
        }
        content.extend_from_slice(&part.data);
    }
    if file.is_none() {
        faults.add(&At::ROOT.name("file"), Fault::Required, "file is required in the first message");
    }
    Ok((file.unwrap_or_default(), content, faults))
}

async fn create(
    tx: &mut Tx<'_>,
    (_, (record, addresses)): &(UploadFileRequest, (Record, Addresses)),
) -> Result<UploadFileResponse, Error> {
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let record = Record { created_at: now, ..record.clone() };
    tx.list_files(std::slice::from_ref(&record.key)).await?;
    if store::insert(tx.db(), account, &record).await? {
        tx.count(LIST, now, 1);
        audit(tx, &record);
    }
    Ok(UploadFileResponse { data: Some(addresses.show(account, record, now)) })
}
