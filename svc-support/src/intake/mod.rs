//! Incoming mail: its content, which ticket it belongs to, and storing it there. Independent of SMTP.

mod events;
pub mod mail;
pub mod memory;
pub mod memory_layer;
mod operations;
mod prepare;
mod routing;
pub mod rpc;

use std::sync::Arc;

use chassis_data::Db;
use chassis_work::Files;
use mail::Mail;
use memory::MailMemory;
use tokio::sync::Semaphore;

use crate::address::OwnDomain;
use crate::clients::{Client, Clients};
use crate::message::Attachment;

/// The largest mail in bytes, when the memory allows it.
pub const MAX_MAIL_BYTES: usize = 25 << 20;
/// The area of the file store that attachments are in.
const FILE_AREA: &str = "attachments";
/// The number of mails that are parsed at the same time. While a mail is parsed, its files are in memory twice: encoded
/// and decoded.
const MAX_PARSING: usize = 2;

/// Accepts mail, whether it comes over gRPC or SMTP. A process has one, because it holds the limits.
#[derive(Clone)]
pub struct Intake {
    db: Db,
    files: Files,
    own: OwnDomain,
    clients: Clients,
    memory: Arc<MailMemory>,
    parsing: Arc<Semaphore>,
}

impl Intake {
    pub fn new(db: Db, files: Files, own: OwnDomain, clients: Clients, memory: Arc<MailMemory>) -> Self {
        Self { db, files, own, clients, memory, parsing: Arc::new(Semaphore::new(MAX_PARSING)) }
    }

    pub fn memory(&self) -> &Arc<MailMemory> {
        &self.memory
    }
}

/// A mail that was parsed, and whose files are in the file store.
#[derive(Clone)]
struct Prepared {
    mail: Mail,
    attachments: Vec<Attachment>,
    /// The names of the attachments in the file store.
    files: Vec<String>,
    /// The client who sent the mail, if one was found.
    client: Option<Client>,
    own: OwnDomain,
}

/// The largest mail in bytes: a mail can have no more memory than its account.
pub fn max_bytes(memory: &MailMemory) -> usize {
    MAX_MAIL_BYTES.min(memory.max_share())
}
