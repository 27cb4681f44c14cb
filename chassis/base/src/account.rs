//! The account a call or a piece of work belongs to. Queries take an [`AccountId`], and one can only be had from a
//! verified context token, a link or a leased account: a query without an account cannot be written by accident.

use chrono_tz::Tz;
use uuid::Uuid;

/// The id of one business; the first column of every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
pub struct AccountId(Uuid);

/// How many parts the background work is divided into.
pub const PARTITIONS: u16 = 64;

impl AccountId {
    /// For the places that establish an account: token verification, provisioning, leased work. Not for handlers.
    pub fn trust(id: Uuid) -> Self {
        Self(id)
    }

    pub fn uuid(self) -> Uuid {
        self.0
    }

    /// Which part of the background work the account belongs to. The last bytes of a UUIDv7 are random.
    pub fn partition(self) -> u16 {
        let bytes = self.0.as_bytes();
        u16::from_be_bytes([bytes[14], bytes[15]]) % PARTITIONS
    }
}

impl std::fmt::Display for AccountId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// An account with the settings that every service needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub id: AccountId,
    /// For "today".
    pub timezone: Tz,
    /// ISO 3166 alpha-2, the default of new records.
    pub country: String,
    /// ISO 4217.
    pub currency: String,
}

impl Account {
    /// An account that this service was not told of: the settings that a new account has.
    pub fn unknown(id: AccountId) -> Self {
        let (country, currency) = ("NL".to_owned(), "EUR".to_owned());
        Self { id, timezone: chrono_tz::Europe::Amsterdam, country, currency }
    }

    /// With the settings as they are stored. An unreadable time zone becomes the default: accounts are read many at a
    /// time, and one must not stop the others.
    pub fn stored(id: AccountId, country: String, timezone: &str, currency: String) -> Self {
        let timezone = timezone.parse().unwrap_or(Self::unknown(id).timezone);
        Self { id, timezone, country, currency }
    }
}
