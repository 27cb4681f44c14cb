//! The messages of tickets: mail of clients, our replies, and notes for colleagues.

pub(crate) mod content;
mod delivery;
mod events;
mod mailer;
pub(crate) mod operations;
pub(crate) mod rpc;
mod rules;
pub(crate) mod scans;
pub(crate) mod store;

pub(crate) use delivery::DeliveryRecorder;
pub(crate) use mailer::Mailer;
pub(crate) use operations::add;

use std::collections::HashMap;

use chassis_base::time::timestamp;
use chassis_work::mail::{self, AttachedFile};
use chrono::{DateTime, Utc};
use proto::support::{
    CreatedTicketMessage, TicketAttachment, TicketAuthor, TicketMail, TicketMessage, TicketMessageDirection,
    TicketMessageMeta, TicketMessageType,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::automatic::Automatic;

/// A message as it is stored.
#[derive(Clone, Debug)]
pub struct Record {
    pub id: Uuid,
    /// 1 at first, and one more with each status of its mail.
    pub version: i64,
    pub inbound: bool,
    pub note: bool,
    pub body: String,
    /// Sanitised; `""` for plain text.
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
    pub updated_at: DateTime<Utc>,
}

/// A file that came or went with a message. The file store has its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    pub id: Uuid,
    pub name: String,
    pub content_type: String,
    pub size: i64,
    /// Whether the mail of the message went without it, because it had been deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
}

impl From<&AttachedFile> for Attachment {
    fn from(file: &AttachedFile) -> Self {
        let AttachedFile { id, name, content_type, size } = file.clone();
        Self { id, name, content_type, size: i64::try_from(size).unwrap_or(i64::MAX), left_out: false }
    }
}

impl Record {
    fn mail_status(&self, statuses: &HashMap<Uuid, mail::Status>) -> TicketMail {
        match self.mail_id {
            _ if self.inbound || self.note => TicketMail::None,
            // It was not mailed because it is the reply of a flow to a program.
            None if self.automatic.is_automatic() && !self.to.is_empty() => TicketMail::Automatic,
            None => TicketMail::NoRecipient,
            Some(id) => match statuses.get(&id) {
                Some(mail::Status::Queued) => TicketMail::Queued,
                Some(mail::Status::Dead) => TicketMail::Failed,
                Some(mail::Status::Sent) | None => TicketMail::Sent,
            },
        }
    }

    /// The mail statuses of a message whose mail the current transaction queues.
    fn queued_mail(&self) -> HashMap<Uuid, mail::Status> {
        self.mail_id.map(|id| (id, mail::Status::Queued)).into_iter().collect()
    }

    /// The message for callers, with the status of its mail. A mail that is not among `statuses` has been sent and
    /// removed from the queue.
    pub fn into_proto(self, statuses: &HashMap<Uuid, mail::Status>) -> TicketMessage {
        let mail = self.mail_status(statuses);
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
                version: self.version,
                updated_at: Some(timestamp(self.updated_at)),
            }),
        }
    }
}

impl From<Record> for CreatedTicketMessage {
    /// The answer to a create: the mail of the message, if it has one, has just been queued.
    fn from(record: Record) -> Self {
        let via_staff_save = record.author_user_id.is_some();
        let statuses = record.queued_mail();
        let TicketMessage { id, direction, r#type, body, created_at, author, meta } =
            record.into_proto(&statuses);
        Self { id, direction, r#type, body, created_at, author, meta, via_staff_save }
    }
}

impl From<Attachment> for TicketAttachment {
    fn from(attachment: Attachment) -> Self {
        let Attachment { id, name, content_type, size, left_out } = attachment;
        Self { id: id.to_string(), name, content_type, size, left_out_of_mail: left_out }
    }
}
