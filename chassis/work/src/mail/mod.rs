//! Mail: queued in the transaction that causes it, composed and delivered later by a worker.
//!
//! The queue keeps the parts of a mail, and each attempt composes the message from them with the same `Message-ID`,
//! `Date` and signature. So attachments that are slow to create or to fetch are loaded outside any transaction, and
//! files of the account are in no row: the queue names them, and their bytes are in memory for as long as an attempt
//! lasts. If the process crashes after the server has accepted a mail and before that is recorded, the mail is sent
//! again with the same `Message-ID`, by which receiving systems recognise duplicates. Otherwise each recipient gets it
//! once.

mod account_files;
pub mod automatic;
mod compose;
mod delivery;
mod dkim;
mod forget;
mod keys;
mod mailer;
mod message;
mod outcome;
mod purge;
mod queue;
mod settings;
mod stored;

#[cfg(test)]
mod tests;

pub use account_files::AccountFiles;
pub use delivery::{Attempted, DeliveryObserver, MAX_ATTEMPTS, worker};
pub use forget::forget;
pub use keys::{delete_key, key_record, put_key, server as key_server};
pub use lettre::message::Mailbox;
pub use mailer::{Mailer, Sender};
pub use message::{Attached, AttachedFile, Attachment, AttachmentSource, Mail, mailbox, read_addresses};
pub use outcome::{Outcome, Status, outcomes, statuses};
pub use purge::worker as purge_worker;
pub use queue::queue;
pub use settings::MailSettings;
