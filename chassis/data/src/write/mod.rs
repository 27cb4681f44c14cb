//! The write transaction. Every mutating rpc goes through [`Db::write`](crate::Db::write): idempotency key, operation,
//! events, list totals, the audit log and the stored response commit together or not at all. Background work goes through
//! [`Db::fenced`](crate::Db::fenced), which begins with the fence of its lease instead of a key, and
//! [`Db::record`](crate::Db::record) keeps what was found out on the way. Nothing else opens a write transaction.
//!
//! [`tx`] is what an operation works with, [`run`] begins transactions and repeats those that lost a race, [`finish`] ends
//! them. Round trips besides the operation's own statements: begin, claim (keyed calls) or fence (background work), finish
//! (one statement for events, totals, audit log and response; left out when there is nothing to finish), commit. Then the
//! account's background work is woken, which costs the call nothing where the process has workers.

mod finish;
mod operation;
mod run;
mod tx;

pub use tx::Tx;
