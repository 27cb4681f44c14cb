//! Shared test helpers: a private database per test, services inside the test's process, and a clock that is held
//! still. Everything runs on real Postgres; nothing here mocks a part of the product.

mod admin;
pub mod authority;
pub mod bare;
mod citus;
mod database;
mod pooler;
mod process;
mod running;
mod scanning;
mod server;
mod smtp;
mod status;
mod stored;
mod tools;
mod waiting;

pub use database::TestDatabase;
pub use pooler::{ServiceDatabase, TestPooler, service_database};
pub use process::{Process, quiet_port};
pub use running::{
    Started, TestCaller, environment, secret, service_settings, start, start_with, start_working,
    start_working_service, timing,
};
pub use scanning::{run_scans, set_threshold};
pub use server::TestServer;
pub use smtp::{Received, SmtpServer};
pub use status::{error_info, expected_faults, faults};
pub use stored::store_text;
pub use tools::{S3Server, python_tool};
pub use waiting::eventually;

use chassis_base::{Account, AccountId, Clock};
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
        timezone: chrono_tz::Europe::Amsterdam,
        country: "NL".to_owned(),
        currency: "EUR".to_owned(),
    }
}
