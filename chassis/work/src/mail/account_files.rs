//! Attachments that are files of the account, which the service `work` keeps: it is asked for them when a request names
//! them, and for their bytes when the mail is delivered. So no bytes are in the queue.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chassis_base::error::status::problem_of;
use chassis_base::{Account, Error, id};
use chassis_rpc::Context;
use chassis_rpc::outgoing::{Outgoing, lookup_failed};
use futures::future::BoxFuture;
use proto::api::{Fault, Problem};
use proto::work::file_service_client::FileServiceClient;
use proto::work::{File, ListFilesRequest, ReadFileRequest, ReadFileResponse};
use proto::{At, Faults};
use tonic::transport::Channel;
use tonic::{Status, Streaming};
use uuid::Uuid;

use super::message::{Attached, AttachedFile};

/// The most files of a mail, and the most bytes that they have together, as the proto files say.
const MAX_FILES: usize = 10;
const MAX_BYTES: u64 = 10 << 20;
/// Whoever attaches files lets others read them, and so has to be able to read them.
const SCOPE: &str = "files.read";
const SERVICE: &str = "work";
/// How long the service may take until it begins to send a file.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// What the reference of such an attachment begins with in the queue.
const PREFIX: &str = "account-file:";

/// Looks up and reads files of accounts.
#[derive(Clone)]
pub struct AccountFiles {
    outgoing: Outgoing,
}

impl AccountFiles {
    pub fn new(outgoing: Outgoing) -> Self {
        Self { outgoing }
    }

    /// The files with these ids, which a request attaches at this place. Ids that cannot be attached add faults. To be
    /// called before the transaction.
    pub async fn attach(
        &self,
        context: &Context,
        ids: &[String],
        at: &At<'_>,
        faults: &mut Faults,
    ) -> Result<Vec<AttachedFile>, Error> {
        // More than that is reported by the check of the request.
        if ids.is_empty() || ids.len() > MAX_FILES {
            return Ok(Vec::new());
        }
        if !context.identity.has_scope(SCOPE) {
            let detail =
                format!("With {} this needs the scope {SCOPE} too. Make a key that has it.", at.label());
            return Err(Error::problem(Problem::InsufficientScope, detail));
        }
        let mut found = self.find(context, ids).await?;
        let mut attached: Vec<AttachedFile> = Vec::with_capacity(ids.len());
        for (index, id) in ids.iter().enumerate() {
            let (id, place) = (id::parse(id), at.index(index));
            if attached.iter().any(|file| Some(file.id) == id) {
                faults.add(&place, Fault::Repeated, format!("{} names this file twice", at.label()));
            } else if let Some(file) = id.and_then(|id| found.remove(&id)) {
                attached.push(file);
            } else {
                let detail = format!("{} must be ids of files of this account", at.label());
                faults.add(&place, Fault::UnknownReference, detail);
            }
        }
        let bytes: u64 = attached.iter().map(|file| file.size).sum();
        if bytes > MAX_BYTES {
            let detail =
                format!("{} can have {MAX_BYTES} bytes together at most; these have {bytes}", at.label());
            faults.add(at, Fault::TooLong, detail);
        }
        Ok(attached)
    }

    /// Boxed, so that the client of the mesh is not compiled in every crate that awaits this.
    fn find<'a>(
        &'a self,
        context: &'a Context,
        ids: &'a [String],
    ) -> BoxFuture<'a, Result<HashMap<Uuid, AttachedFile>, Error>> {
        Box::pin(async move {
            let id: Vec<String> = ids.iter().filter_map(|id| Some(id::parse(id)?.to_string())).collect();
            // Without ids, all files would be listed.
            if id.is_empty() {
                return Ok(HashMap::new());
            }
            let query = ListFilesRequest { id, ..ListFilesRequest::default() };
            let request = self.outgoing.request(SERVICE, context.account(), context.deadline, query)?;
            let listed = self.client()?.list_files(request).await.map_err(|status| unavailable(&status))?;
            let files = listed.into_inner().data.into_iter().filter_map(attached_file);
            Ok(files.map(|file| (file.id, file)).collect())
        })
    }

    /// Reads a file; `None` if it was deleted. The caller limits how long that may take.
    pub(super) async fn read(
        &self,
        account: &Account,
        file: &FileReference,
    ) -> Result<Option<Attached>, Error> {
        let query = ReadFileRequest { id: file.id.to_string() };
        let request = self.outgoing.request(SERVICE, account, Instant::now() + READ_TIMEOUT, query)?;
        match self.client()?.read_file(request).await {
            Ok(parts) => collect(parts.into_inner(), file).await.map(Some),
            Err(status) if problem_of(&status) == Some(Problem::NotFound) => Ok(None),
            Err(status) => Err(unavailable(&status)),
        }
    }

    fn client(&self) -> Result<FileServiceClient<Channel>, Error> {
        Ok(FileServiceClient::new(self.outgoing.channel(SERVICE)?))
    }
}

/// Joins the parts of a file. A file never changes: other bytes than were attached are an error.
async fn collect(mut parts: Streaming<ReadFileResponse>, file: &FileReference) -> Result<Attached, Error> {
    let size = usize::try_from(file.size.min(MAX_BYTES)).unwrap_or_default();
    let mut attached = Attached { bytes: Vec::with_capacity(size), ..Attached::default() };
    while let Some(part) = parts.message().await.map_err(|status| unavailable(&status))? {
        if let Some(read) = part.file {
            (attached.name, attached.content_type) = (read.name, read.content_type);
        }
        if attached.bytes.len() + part.data.len() > size {
            break;
        }
        attached.bytes.extend_from_slice(&part.data);
    }
    if attached.bytes.len() == size {
        Ok(attached)
    } else {
        Err(Error::Internal(format!(
            "the file {} does not have the {size} bytes that were attached",
            file.id
        )))
    }
}

fn attached_file(file: File) -> Option<AttachedFile> {
    let meta = file.meta.unwrap_or_default();
    Some(AttachedFile {
        id: id::parse(&file.id)?,
        name: file.name,
        content_type: meta.content_type,
        size: u64::try_from(meta.size).ok()?,
    })
}

fn unavailable(status: &Status) -> Error {
    lookup_failed(SERVICE, "Files", status)
}

/// How the queue names a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileReference {
    pub id: Uuid,
    pub size: u64,
}

impl FileReference {
    /// The text that stands for the file. A program of a release without such attachments does not know it, and so does
    /// not send the mail without them.
    pub(super) fn text(self) -> String {
        format!("{PREFIX}{}", self.id)
    }

    /// `None` for what a service loads itself.
    pub(super) fn parse(text: &str, size: u64) -> Option<Self> {
        Some(Self { id: id::parse(text.strip_prefix(PREFIX)?)?, size })
    }
}
