//! Mail: queued in the transaction that causes it, put together and delivered later by a worker.
//!
//! What a mail is made of is kept, and its text is made of it at each attempt, `Message-ID`, `Date` and signature being
//! the same every time. So attachments that take long to make or to fetch are had outside any transaction. Should the
//! process die between the server's "accepted" and the note of it, the mail goes out again, with the same `Message-ID`,
//! by which receiving systems recognise it; otherwise everyone gets it once.

pub mod automatic;
mod compose;
mod delivery;
mod dkim;
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

pub use delivery::{MAX_ATTEMPTS, worker};
pub use keys::{delete_key, key_record, put_key, server as key_server};
pub use lettre::message::Mailbox;
pub use mailer::{Mailer, Sender};
pub use message::{Attached, Attachment, AttachmentSource, Mail, mailbox, read_addresses};
pub use outcome::{Outcome, Status, outcomes, statuses};
pub use purge::worker as purge_worker;
pub use queue::queue;
pub use settings::MailSettings;
