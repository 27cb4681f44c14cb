//! The write transaction. Every mutating rpc goes through [`Db::write`](crate::Db::write): idempotency key,
//! operation, log entries, list totals and the stored response commit together or not at all. Background
//! work goes through [`Db::fenced`](crate::Db::fenced), which begins with the fence of its lease instead of a key.
//! [`Db::record`](crate::Db::record) stores what the service itself has found. Nothing else opens a write
//! transaction.
//!
//! [`tx`] is the transaction as operations use it, [`run`] begins transactions and repeats those that lost a race, and
//! [`finish`] ends them with one [`statement`]. [`precondition`] refuses a write whose caller knows an older version of the
//! record, [`rehearsal`] undoes one that is only tried, [`collision`] mends versions that the log has already. Round trips
//! besides the operation's own statements: begin, fence (background work), finish (one statement for log entries, totals
//! and the key with its response; skipped if there is none of these), commit; two look-ups with `If-Match`; one for the key
//! of a call that fails; one for a number that is taken before the transaction ([`numbers`]). Then the account's background
//! work is woken, without a round trip if the process has workers.

mod collision;
mod finish;
mod numbers;
mod operation;
mod precondition;
mod rehearsal;
mod run;
mod statement;
mod turn;
mod tx;

pub(crate) use numbers::Numbers;
pub(crate) use turn::Turns;
pub use tx::Tx;
