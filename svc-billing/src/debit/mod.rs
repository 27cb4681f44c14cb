//! Direct debit: the mandates of clients, how they come about, and the collection of invoices with them. What becomes of
//! a payment is `online`'s; this folder is told.

mod answer;
mod look;
mod operations;
pub mod rpc;
mod rules;
pub mod store;

use chrono::{DateTime, Utc};
use uuid::Uuid;

pub use look::worker;
pub use operations::{collect, follow, set_customer};
pub use rules::{Answered, without};

/// A mandate as its provider knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    None,
    Pending,
    Valid,
    Invalid,
}

impl Given {
    const ALL: [(Self, &'static str); 4] = [
        (Self::None, "none"),
        (Self::Pending, "pending"),
        (Self::Valid, "valid"),
        (Self::Invalid, "invalid"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(given, _)| *given == self).map_or("", |(_, name)| name)
    }

    fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|(_, of)| *of == name).map_or(Self::None, |(given, _)| given)
    }
}

/// A client as a provider knows it. Texts that are not known are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debtor {
    pub client_id: Uuid,
    pub provider: String,
    pub customer_id: String,
    pub mandate_id: String,
    pub mandate: Given,
    pub verified_at: Option<DateTime<Utc>>,
    pub authorized_at: Option<DateTime<Utc>>,
    pub activated_at: Option<DateTime<Utc>>,
    /// When the provider was asked for what is known of the mandate.
    pub asked_at: Option<DateTime<Utc>>,
}

impl Debtor {
    /// Whether a mandate that counts was not asked for since.
    pub fn is_stale(&self, since: DateTime<Utc>) -> bool {
        self.mandate == Given::Valid && self.asked_at.is_none_or(|asked| asked < since)
    }

    /// Whether the provider is still to decide about a mandate that was paid for.
    pub fn is_waiting(&self) -> bool {
        self.verified_at.is_some() && matches!(self.mandate, Given::None | Given::Pending)
    }
}
