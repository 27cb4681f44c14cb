//! What every service shares: configuration, telemetry, server and client set-up, account context, the write
//! transaction, paging, numbering, formats of values, JSON and protobuf, mail, files, workers, clock and errors. Knows no
//! business word.

pub mod account;
pub mod audit;
mod backlog;
mod bytes_codec;
pub mod call;
mod caused;
pub mod clock;
pub mod config;
pub mod connections;
pub mod db;
pub mod dead_letters;
pub mod doctor;
pub mod error;
pub mod files;
pub mod formats;
pub mod heard;
pub mod html;
pub mod id;
pub mod idempotency;
pub mod link;
pub mod list;
mod long_pages;
pub mod mail;
pub mod mask;
pub mod mesh;
mod node;
pub mod numbering;
pub mod outbox;
pub mod outgoing;
pub mod paging;
pub mod pass;
pub mod peer;
pub mod pool;
mod private;
mod probe;
mod provisioning;
pub mod references;
pub mod relay;
pub mod row;
pub mod scan;
mod scope;
pub mod server;
pub mod service;
mod shares;
pub mod stored;
pub mod telemetry;
pub mod time;
pub mod tls;
pub mod token;
pub mod totals;
pub mod transcode;
pub mod worker;
pub mod write;

pub use account::{Account, AccountId};
pub use call::{Call, Context};
pub use clock::Clock;
pub use db::Db;
pub use error::Error;
pub use files::Files;
pub use link::Link;
pub use long_pages::PageBytes;
pub use outbox::{Event, Listener};
pub use pass::Pass;
pub use probe::Unreachable;
pub use service::{Runtime, Service};
pub use worker::Worker;
pub use write::Tx;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "testing")]
pub mod testing;
