//! Mandates for direct debit: what a provider knows of each client and its mandate. Owns the table `debtor`.
//!
//! A mandate comes about when the client pays a verification, and can be withdrawn at the bank at any time. No
//! provider sends a webhook for that, so a worker fetches each valid mandate once a day, and [`refresh_now`] fetches
//! it before something depends on it. How a mandate is requested and used is in `debit` and `processor`.
//!
//! Besides the files that every resource has: `message` turns records into messages of the contract, and `refresh`
//! fetches the mandate of one client within a call.

mod message;
pub(crate) mod operations;
mod refresh;
pub(crate) mod rules;
pub(crate) mod store;
mod worker;

use chrono::{DateTime, Utc};
use uuid::Uuid;

pub(crate) use message::ClientMandate;
pub(crate) use refresh::refresh_now;
pub(crate) use worker::worker;

/// The state of a client's mandate at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MandateState {
    None,
    Pending,
    Valid,
    Invalid,
}

impl MandateState {
    const NAMES: [(Self, &'static str); 4] = [
        (Self::None, "none"),
        (Self::Pending, "pending"),
        (Self::Valid, "valid"),
        (Self::Invalid, "invalid"),
    ];

    /// The name in the database.
    fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name)
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(_, known)| *known == name).map(|(state, _)| state)
    }
}

impl From<provider::MandateStatus> for MandateState {
    fn from(status: provider::MandateStatus) -> Self {
        match status {
            provider::MandateStatus::Pending => Self::Pending,
            provider::MandateStatus::Valid => Self::Valid,
            provider::MandateStatus::Invalid => Self::Invalid,
        }
    }
}

/// A client as a customer of a provider. Texts that are not known are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Debtor {
    pub client_id: Uuid,
    pub provider: String,
    /// The provider's id of the client.
    pub customer_id: String,
    pub mandate_id: String,
    pub mandate: MandateState,
    pub verified_at: Option<DateTime<Utc>>,
    pub authorized_at: Option<DateTime<Utc>>,
    pub activated_at: Option<DateTime<Utc>>,
    /// When the provider was asked for the mandate that is stored.
    pub asked_at: Option<DateTime<Utc>>,
    /// Counts the changes of what is shown of the client's mandate, its latest verification included, from 1, with
    /// whichever provider. 0 in the transaction that stores the first debtor, until its verification is stored too.
    pub version: i64,
    /// When that changed last.
    pub updated_at: DateTime<Utc>,
}

impl Debtor {
    /// Whether the mandate is valid and was last fetched before this time.
    pub(crate) fn is_stale(&self, since: DateTime<Utc>) -> bool {
        self.mandate == MandateState::Valid && self.asked_at.is_none_or(|asked| asked < since)
    }

    /// Whether the verification was paid and the provider has not decided about the mandate yet.
    pub(crate) fn awaits_mandate(&self) -> bool {
        self.verified_at.is_some() && matches!(self.mandate, MandateState::None | MandateState::Pending)
    }
}
