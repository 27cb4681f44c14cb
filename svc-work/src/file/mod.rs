//! Files: uploads of this service, and those that other services tell of. The bytes of all of them are in one object
//! store, where each service has its own place; a row here refers to them by their key.

pub mod download;
pub mod removal;
pub mod rpc;
mod rules;
pub mod store;
mod upload;

use chassis::time::timestamp;
use chassis::token::Tokens;
use chassis::{AccountId, Pass, Tx};
use chrono::{DateTime, TimeDelta, Utc};
use proto::work::{File, FileMeta};
use uuid::Uuid;

pub use rules::{media_type, safe_name};

/// The counter of all files.
pub const LIST: &str = "file";
/// What the addresses are signed for.
const PURPOSE: &str = "work.file";
/// How long an address is good.
const GOOD_FOR: TimeDelta = TimeDelta::hours(1);

/// A file as it is stored.
#[derive(Clone, Debug)]
pub struct Record {
    pub id: Uuid,
    pub name: String,
    pub content_type: String,
    pub size: i64,
    /// Where its bytes are: `service/area/name`.
    pub key: String,
    pub source: Source,
    pub created_at: DateTime<Utc>,
}

/// What a file came with.
#[derive(Clone, Debug)]
pub struct Source {
    pub kind: String,
    pub id: Option<Uuid>,
    /// Of a generated file.
    pub version: Option<i64>,
}

/// Makes the addresses of files.
#[derive(Clone)]
pub struct Addresses {
    tokens: Tokens,
    public_url: String,
}

impl Addresses {
    pub fn new(tokens: Tokens, public_url: &str) -> Self {
        Self { tokens, public_url: public_url.trim_end_matches('/').to_owned() }
    }

    fn url(&self, account: AccountId, id: Uuid, now: DateTime<Utc>) -> String {
        let token = Pass { account, id, until: now + GOOD_FOR }.write(&self.tokens, PURPOSE);
        format!("{}/files/{token}", self.public_url)
    }

    fn read(&self, token: &str) -> Option<Pass> {
        Pass::read(token, &self.tokens, PURPOSE)
    }

    /// A file as it is shown, with an address that begins to run now.
    fn show(&self, account: AccountId, record: Record, now: DateTime<Utc>) -> File {
        let url = self.url(account, record.id, now);
        shown(record, url)
    }
}

fn shown(record: Record, url: String) -> File {
    let Record { id, name, content_type, size, key: _, source, created_at } = record;
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
        }),
    }
}

/// What the audit log calls it.
pub const AUDITED: &str = "file";

/// Keeps a file in the audit log, without an address.
pub fn audit(tx: &mut Tx<'_>, record: &Record) {
    tx.changed(AUDITED, record.id, &shown(record.clone(), String::new()));
}
