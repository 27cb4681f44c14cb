//! Channels: the addresses through which mail comes in and goes out.

pub(crate) mod operations;
pub(crate) mod rpc;
mod rules;
pub(crate) mod store;

use chassis_base::AccountId;
use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::support::{TicketChannel, TicketChannelMeta};
use uuid::Uuid;

use crate::address::{InboundKey, OwnDomain};

/// A channel as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub id: Uuid,
    pub version: i64,
    pub values: Values,
    pub inbound_key: InboundKey,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// The fields that callers can set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values {
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

/// Name and address of a sender; the address may be empty.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sender<'a> {
    pub name: &'a str,
    pub email: &'a str,
}

fn first_filled<'a>(first: &'a str, other: &'a str) -> &'a str {
    if first.is_empty() { other } else { first }
}

impl Record {
    /// The sender of mail that goes out through the channel.
    pub(crate) fn sender(&self) -> Sender<'_> {
        let Values { name, email, from_email, from_name, .. } = &self.values;
        Sender { name: first_filled(from_name, name), email: first_filled(from_email, email) }
    }

    /// Whether this is an address of the channel. Addresses are compared without regard to case.
    pub(crate) fn has_address(&self, address: &str) -> bool {
        let Values { email, from_email, forwarding_emails, .. } = &self.values;
        let all = [email, from_email].into_iter().chain(forwarding_emails);
        all.filter(|own| !own.is_empty()).any(|own| own.eq_ignore_ascii_case(address))
    }

    /// The message for callers, with the inbound address that belongs to the account and the mail domain.
    pub(crate) fn into_proto(self, account: AccountId, own: &OwnDomain) -> TicketChannel {
        let Self { id, version, values, inbound_key, created_at, updated_at } = self;
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
                version,
            }),
        }
    }
}
