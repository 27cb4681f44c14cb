//! What most tests begin with: a clock that is held still, and an account of their own.

use chassis_base::{Account, AccountId, Clock, Timezone};
use chrono::{DateTime, Utc};
use uuid::Uuid;

/// A fixed Sunday morning.
pub fn moment() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + chrono::TimeDelta::milliseconds(1_794_740_400_123)
}

/// A clock that is held at [`moment`] until a test moves it.
pub fn clock() -> Clock {
    Clock::held_at(moment())
}

/// An account with a random id, which no other test uses.
pub fn account() -> Account {
    Account {
        id: AccountId::trust(Uuid::new_v4()),
        timezone: Timezone::AMSTERDAM,
        country: "NL".to_owned(),
        currency: "EUR".to_owned(),
    }
}
