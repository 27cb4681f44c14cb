//! Channels: the ways that mail comes in and goes out.

pub mod rpc;
mod rules;
pub mod store;

use chassis::AccountId;
use chassis::time::timestamp;
use chrono::{DateTime, Utc};
use proto::support::{TicketChannel, TicketChannelMeta};
use uuid::Uuid;

use crate::address::{InboundKey, OwnDomain};

/// A channel as it is stored.
#[derive(Clone, Debug)]
pub struct Record {
    pub id: Uuid,
    pub values: Values,
    pub inbound_key: InboundKey,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// What can be set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    pub name: String,
    /// In lower case.
    pub email: String,
    pub from_email: String,
    pub from_name: String,
    /// In lower case.
    pub forwarding_emails: Vec<String>,
    pub active: bool,
    pub position: i32,
}

impl Record {
    /// The name and the address that mail through it comes from; the address may be empty.
    pub fn sender<'a>(&'a self) -> (&'a str, &'a str) {
        let Values { name, email, from_email, from_name, .. } = &self.values;
        let or = |wanted: &'a str, other: &'a str| if wanted.is_empty() { other } else { wanted };
        (or(from_name, name), or(from_email, email))
    }

    /// Whether mail from this address is the channel's own.
    pub fn has_address(&self, address: &str) -> bool {
        let Values { email, from_email, forwarding_emails, .. } = &self.values;
        let known = [email, from_email].into_iter().chain(forwarding_emails);
        known.filter(|own| !own.is_empty()).any(|own| own.eq_ignore_ascii_case(address))
    }

    pub fn message(self, account: AccountId, own: &OwnDomain) -> TicketChannel {
        let Self { id, values, inbound_key, created_at, updated_at } = self;
        let Values { name, email, from_email, from_name, forwarding_emails, active, position } = values;
        TicketChannel {
            id: id.to_string(),
            name,
            email,
            from_email,
            from_name,
            inbound_email: own.inbound(account, &inbound_key).unwrap_or_default(),
            forwarding_emails,
            active,
            order: position,
            meta: Some(TicketChannelMeta {
                created_at: Some(timestamp(created_at)),
                updated_at: Some(timestamp(updated_at)),
            }),
        }
    }
}
