//! Files: uploads of this service, and files of other services that announce them with an event. The bytes of all of them
//! are in one object store, where each service has a folder of its own; a row here refers to them by their key.

pub(crate) mod operations;
pub(crate) mod rpc;
mod rules;
pub(crate) mod slots;
mod store;
pub(crate) mod worker;

use chassis_base::AccountId;
use chassis_base::time::timestamp;
use chassis_data::Listing;
use chassis_rpc::Pass;
use chassis_rpc::token::Tokens;
use chrono::{DateTime, TimeDelta, Utc};
use proto::work::{File, FileMeta};
use uuid::Uuid;

pub(crate) use rules::{media_type, safe_name};

/// The name of the counter of all files.
const LIST: &str = "file";

/// What lists filter by.
const KIND_COLUMN: &str = "source_type";
/// The purpose that the tokens of download links are signed for.
const PURPOSE: &str = "work.file";
/// How long a download link works.
const LINK_LIFETIME: TimeDelta = TimeDelta::hours(1);

/// A file as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub id: Uuid,
    /// Grows by one with every change.
    pub version: i64,
    pub name: String,
    pub content_type: String,
    pub size: i64,
    /// Where its bytes are in the object store: `service/area/name`.
    pub key: String,
    pub source: Source,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// What a file was stored with, for example the message of a ticket.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub kind: String,
    pub id: Option<Uuid>,
    /// Set for a generated file: a higher version of the same source replaces a lower one.
    pub version: Option<i64>,
}

impl Record {
    /// The lists that show it.
    fn listing(&self) -> Listing {
        Listing::new(self.created_at, self.id).of(LIST).with(LIST, KIND_COLUMN, &self.source.kind)
    }

    /// The message of the file with this download link.
    fn into_message(self, url: String) -> File {
        let Self { id, version, name, content_type, size, key: _, source, created_at, updated_at } = self;
        File {
            id: id.to_string(),
            extension: rules::extension(&name),
            url,
            name,
            created_at: Some(timestamp(created_at)),
            meta: Some(FileMeta {
                content_type,
                size,
                source_type: source.kind,
                source_id: source.id.map(|id| id.to_string()),
                version,
                updated_at: Some(timestamp(updated_at)),
            }),
        }
    }
}

/// Makes and reads the download links of files.
#[derive(Clone)]
pub(crate) struct DownloadLinks {
    tokens: Tokens,
    public_url: String,
}

impl DownloadLinks {
    pub(crate) fn new(tokens: Tokens, public_url: &str) -> Self {
        Self { tokens, public_url: public_url.trim_end_matches('/').to_owned() }
    }

    fn url(&self, account: AccountId, id: Uuid, now: DateTime<Utc>) -> String {
        let token = Pass { account, id, until: now + LINK_LIFETIME }.write(&self.tokens, PURPOSE);
        format!("{}/files/{token}", self.public_url)
    }

    fn read(&self, token: &str) -> Option<Pass> {
        Pass::read(token, &self.tokens, PURPOSE)
    }

    /// The message of a file, with a download link whose lifetime starts now.
    fn message(&self, account: AccountId, record: Record, now: DateTime<Utc>) -> File {
        let url = self.url(account, record.id, now);
        record.into_message(url)
    }
}
