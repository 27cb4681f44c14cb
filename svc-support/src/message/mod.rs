//! The messages of tickets: what clients write by mail, what we answer, and notes for colleagues.

pub mod content;
mod letter;
mod operations;
pub mod rpc;
pub mod store;

pub use letter::Desk;
pub use operations::add;

use std::collections::HashMap;

use chassis::mail;
use chassis::time::timestamp;
use chrono::{DateTime, Utc};
use proto::support::{
    CreatedTicketMessage, TicketAttachment, TicketAuthor, TicketMail, TicketMessage, TicketMessageDirection,
    TicketMessageMeta, TicketMessageType,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A message as it is stored.
#[derive(Clone, Debug)]
pub struct Record {
    pub id: Uuid,
    pub inbound: bool,
    pub note: bool,
    pub body: String,
    /// Safe; `""` for plain text.
    pub html: String,
    pub author_name: String,
    pub author_email: String,
    pub author_user_id: Option<i64>,
    /// In lower case, like `cc`.
    pub to: Vec<String>,
    pub cc: Vec<String>,
    /// Without angle brackets; `""` when there is no mail.
    pub message_id: String,
    /// The mail in the queue that it was sent as.
    pub mail_id: Option<Uuid>,
    pub attachments: Vec<Attachment>,
    pub automatic: Automatic,
    pub created_at: DateTime<Utc>,
}

/// Whether a person wrote a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Automatic {
    #[default]
    #[sqlx(rename = "")]
    No,
    /// It came through a mailing list: a person perhaps.
    List,
    /// An automatic reply, a bounce, a flow.
    Program,
}

impl Automatic {
    /// Whether no program answers it.
    pub fn is_automatic(self) -> bool {
        self != Self::No
    }
}

/// What a message tells of a file that came with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    pub id: Uuid,
    pub name: String,
    pub content_type: String,
    pub size: i64,
}

impl Record {
    fn mail(&self, statuses: &HashMap<Uuid, mail::Status>) -> TicketMail {
        match self.mail_id {
            _ if self.inbound || self.note => TicketMail::None,
            // A flow wrote it, in answer to what no person wrote.
            None if self.automatic.is_automatic() && !self.to.is_empty() => TicketMail::Automatic,
            None => TicketMail::NoRecipient,
            Some(id) => match statuses.get(&id) {
                Some(mail::Status::Queued) => TicketMail::Queued,
                Some(mail::Status::Dead) => TicketMail::Failed,
                Some(mail::Status::Sent) | None => TicketMail::Sent,
            },
        }
    }

    /// As it is shown, with where its mail stands.
    pub fn shown(self, statuses: &HashMap<Uuid, mail::Status>) -> TicketMessage {
        let mail = self.mail(statuses);
        let direction = if self.inbound { TicketMessageDirection::In } else { TicketMessageDirection::Out };
        let kind = if self.note { TicketMessageType::Note } else { TicketMessageType::Reply };
        let attachments = self.attachments.into_iter().map(TicketAttachment::from);
        TicketMessage {
            id: self.id.to_string(),
            direction: direction.into(),
            r#type: kind.into(),
            body: self.body,
            created_at: Some(timestamp(self.created_at)),
            author: Some(TicketAuthor { name: self.author_name, email: self.author_email }),
            meta: Some(TicketMessageMeta {
                html: self.html,
                to: self.to,
                cc: self.cc,
                mail: mail.into(),
                message_id: self.message_id,
                attachments: attachments.collect(),
                author_user_id: self.author_user_id,
            }),
        }
    }
}

impl From<Attachment> for TicketAttachment {
    fn from(attachment: Attachment) -> Self {
        let Attachment { id, name, content_type, size } = attachment;
        Self { id: id.to_string(), name, content_type, size }
    }
}

/// A message as creating it answers.
fn created(message: TicketMessage) -> CreatedTicketMessage {
    let TicketMessage { id, direction, r#type, body, created_at, author, meta } = message;
    let via_staff_save = meta.as_ref().is_some_and(|meta| meta.author_user_id.is_some());
    CreatedTicketMessage { id, direction, r#type, body, created_at, author, meta, via_staff_save }
}
