//! Shared test helpers: a private database per test, services inside the test's process, and a clock that is held
//! still. Everything runs on real Postgres; nothing here mocks a part of the product.

mod admin;
pub mod authority;
pub mod bare;
mod citus;
mod counted;
mod database;
mod fixtures;
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

pub use counted::{assert_filters_counted, assert_filters_counted_with};
pub use database::TestDatabase;
pub use fixtures::{account, clock, moment};
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
pub use stored::{store_text, undelivered};
pub use tools::{S3Server, python_tool};
pub use waiting::eventually;
