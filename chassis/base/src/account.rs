//! The account that a call or background work belongs to. Queries take an [`AccountId`], which comes only from a
//! verified context token, a link or a lease, so that nobody writes a query without an account by accident.

use crate::Timezone;
use uuid::Uuid;

/// The id of one business; the first column of every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(Uuid);

/// How many partitions the background work is divided into.
pub const PARTITIONS: u16 = 64;

impl AccountId {
    /// For code that establishes an account: token verification, provisioning, leased work. Not for handlers.
    pub fn trust(id: Uuid) -> Self {
        Self(id)
    }

    pub fn uuid(self) -> Uuid {
        self.0
    }

    /// The account's partition of the background work. The last bytes of a UUIDv7 are random, so the spread is even.
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

/// Stored as the UUID that it is.
#[cfg(feature = "sqlx")]
mod stored {
    use sqlx::encode::IsNull;
    use sqlx::error::BoxDynError;
    use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef};
    use sqlx::{Decode, Encode, Postgres, Type};
    use uuid::Uuid;

    use super::AccountId;

    impl Type<Postgres> for AccountId {
        fn type_info() -> PgTypeInfo {
            Uuid::type_info()
        }
    }

    impl PgHasArrayType for AccountId {
        fn array_type_info() -> PgTypeInfo {
            Uuid::array_type_info()
        }
    }

    impl Encode<'_, Postgres> for AccountId {
        fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
            self.0.encode_by_ref(buffer)
        }
    }

    impl Decode<'_, Postgres> for AccountId {
        fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
            Uuid::decode(value).map(Self)
        }
    }
}

/// An account with the settings that every service needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub id: AccountId,
    /// Decides which day is today.
    pub timezone: Timezone,
    /// ISO 3166 alpha-2; the default country of new records.
    pub country: String,
    /// ISO 4217.
    pub currency: String,
}

impl Account {
    /// An account that is not provisioned in this service, with the settings of a new account.
    pub fn unknown(id: AccountId) -> Self {
        let (country, currency) = ("NL".to_owned(), "EUR".to_owned());
        Self { id, timezone: Timezone::AMSTERDAM, country, currency }
    }

    /// An account with its stored settings. An unreadable time zone becomes the default, because accounts are read in
    /// batches and a single bad row must not fail the batch.
    pub fn stored(id: AccountId, country: String, timezone: &str, currency: String) -> Self {
        let timezone = timezone.parse().unwrap_or(Self::unknown(id).timezone);
        Self { id, timezone, country, currency }
    }
}
