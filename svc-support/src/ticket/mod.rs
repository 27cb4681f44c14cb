//! Tickets: questions and complaints of clients. Their messages are in `message`, which uses this folder; nothing here
//! uses `message`.

pub(crate) mod events;
pub(crate) mod operations;
pub(crate) mod rpc;
pub(crate) mod rules;
pub(crate) mod scans;
pub(crate) mod store;

pub(crate) use operations::{NewTicket, count_change, find, insert, record_change, set_status};

use chassis_base::time::timestamp;
use chassis_data::Listing;
use chrono::{DateTime, Utc};
use proto::support::{Ticket, TicketItem, TicketMeta, TicketPriority};
use uuid::Uuid;

use crate::address::ReplySecret;

/// The name of the counter of all tickets, and of the counter of their numbers.
const LIST: &str = "ticket";

/// What lists filter by.
const STATUS_COLUMN: &str = "status";
const PRIORITY_COLUMN: &str = "priority";
const CHANNEL_COLUMN: &str = "channel_id";
const SOURCE_COLUMN: &str = "source";

/// How a ticket was created. Stored as text in `ticket.source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Api,
    Email,
}

impl Source {
    pub fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Email => "email",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Api, Self::Email].into_iter().find(|source| source.name() == name)
    }
}

/// A ticket as it is stored.
#[derive(Clone, Debug)]
pub struct Record {
    pub id: Uuid,
    /// 1 at first, and one more for each transaction that changes the ticket.
    pub version: i64,
    /// How many events it has had because time passed, which is no change.
    pub timed_events: i64,
    pub number: String,
    pub values: Values,
    pub status: String,
    pub source: Source,
    pub channel_id: Option<Uuid>,
    pub reply_secret: ReplySecret,
    pub message_count: i64,
    pub last_message_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
}

/// The fields that callers can set, besides the status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    pub subject: String,
    pub priority: TicketPriority,
    pub client_name: String,
    pub client_email: String,
    pub client_id: Option<Uuid>,
}

impl Record {
    /// The lists that show it.
    fn listing(&self) -> Listing {
        let listing = Listing::new(self.created_at, self.id)
            .of(LIST)
            .with(LIST, STATUS_COLUMN, &self.status)
            .with(LIST, PRIORITY_COLUMN, &store::priority_number(self.values.priority).to_string())
            .with(LIST, SOURCE_COLUMN, self.source.name());
        match self.channel_id {
            Some(channel) => listing.with(LIST, CHANNEL_COLUMN, &channel.to_string()),
            None => listing,
        }
    }

    /// The version that its events carry: no two transactions emit an event with the same one.
    pub(crate) fn event_version(&self) -> i64 {
        self.version + self.timed_events
    }

    fn meta(&self) -> TicketMeta {
        TicketMeta {
            channel_id: self.channel_id.map(|id| id.to_string()),
            message_count: self.message_count,
            last_message_at: self.last_message_at.map(timestamp),
            version: self.version,
            updated_at: Some(timestamp(self.updated_at)),
        }
    }
}

impl From<Record> for Ticket {
    fn from(record: Record) -> Self {
        let meta = record.meta();
        Self {
            id: record.id.to_string(),
            number: record.number,
            subject: record.values.subject,
            status: record.status,
            priority: record.values.priority.into(),
            client_name: record.values.client_name,
            client_email: record.values.client_email,
            client_id: record.values.client_id.map(|id| id.to_string()),
            // Tickets cannot belong to projects yet.
            project_id: None,
            created_at: Some(timestamp(record.created_at)),
            meta: Some(meta),
            source: record.source.name().to_owned(),
            updated_at: Some(timestamp(record.updated_at)),
            closed_at: record.closed_at.map(timestamp),
        }
    }
}

impl From<Record> for TicketItem {
    fn from(record: Record) -> Self {
        let meta = record.meta();
        Self {
            id: record.id.to_string(),
            number: record.number,
            subject: record.values.subject,
            status: record.status,
            priority: record.values.priority.into(),
            client_name: record.values.client_name,
            client_email: record.values.client_email,
            client_id: record.values.client_id.map(|id| id.to_string()),
            project_id: None,
            created_at: Some(timestamp(record.created_at)),
            meta: Some(meta),
        }
    }
}
