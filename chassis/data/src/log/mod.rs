//! The log of an account: what was changed, by whom and when, with the record after the change and the event that the
//! change tells. The audit log, the delivery of events and the change feed all read this one log.
//!
//! A write transaction appends its entries with the statement that finishes it ([`entries`]); operations only report
//! what they write, with [`Plan::changed`](crate::Plan::changed) and [`Plan::removed`](crate::Plan::removed) ([`changes`]), and
//! what they tell, with [`Plan::emit`](crate::Plan::emit) ([`event`]). If an rpc reports nothing, the records in its
//! response count as written. Debug builds check that no change lacks an entry ([`check`]). Records are handled only as
//! messages of the contract ([`image`]).
//!
//! After the commit the entries get their positions: 1, 2, 3, … for each account, without gaps ([`mod@number`]), in a
//! chain of hashes ([`chain`], [`verify`]). So writers share no lock. Positions are the order in which readers follow the
//! log ([`read`]); the gateway and internal teams do so over gRPC ([`rpc`]), and can wait for what comes ([`watcher`]).
//!
//! What no transaction has logged, because it is older than the log or comes from the release before, a pass logs later
//! ([`snapshot`]).
//!
//! Entries are never deleted. Images that are old and superseded, and the data of old events, are forgotten by a command
//! ([`mod@compact`]); so are those that a service wants to be forgotten ([`forget`]), which readers leave out at once.

mod audit;
mod chain;
pub(crate) mod changes;
pub(crate) mod check;
pub(crate) mod compact;
pub(crate) mod entries;
pub mod event;
pub(crate) mod forget;
pub(crate) mod image;
mod json;
mod number;
mod read;
mod rpc;
pub mod snapshot;
mod verify;
pub(crate) mod watch;
mod watcher;

pub use audit::server as audit_server;
pub use compact::{Compacted, compact};
pub use number::number;
pub use rpc::{head, server, verify};
