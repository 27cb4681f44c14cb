//! The write transaction. Every mutating rpc goes through [`Db::write`](crate::Db::write): idempotency key,
//! operation, log entries, list totals and the stored response commit together or not at all. Background
//! work goes through [`Db::fenced`](crate::Db::fenced), which begins with the fence of its lease instead of a key.
//! [`Db::record`](crate::Db::record) stores what the service itself has found. Nothing else opens a write
//! transaction.
//!
//! [`plan`] is what is known about a write without the database, [`tx`] the open transaction as operations use it, [`lazy`] a
//! write that opens a transaction only if it needs one. [`run`] runs operations, [`attempts`] repeats those that lost a race,
//! [`finish`] ends them with one [`statement`], whose values [`last`] collects. [`precondition`] refuses a write whose caller
//! knows an older version of the record, [`rehearsal`] undoes one that is only tried, [`mend`] gives
//! records other versions if the log has theirs already.
//!
//! Round trips besides the operation's own statements: begin, fence (background work), finish (one statement for log entries,
//! totals, the key with its response, and a row that the operation leaves to it; skipped if there is none of these), commit.
//! A lazy write makes only the one of its last statement, and those of a transaction if that is refused. Besides: two
//! look-ups with `If-Match`; one for the key of a call that fails; one for the numbers of calls that run at the same time
//! ([`numbers`]); none for numbers without gaps ([`sequence`]) while one process takes them. Then the account's background work
//! is woken, without a round trip if the process has workers.

mod attempts;
mod collision;
mod deferred;
mod finish;
mod last;
mod lazy;
mod mend;
mod numbers;
mod operation;
mod plan;
mod precondition;
mod rehearsal;
mod run;
mod sequence;
mod statement;
mod turn;
mod tx;

pub use lazy::LazyTx;
pub(crate) use numbers::Numbers;
pub use plan::Plan;
pub(crate) use sequence::Sequences;
pub(crate) use turn::Turns;
pub use tx::Tx;
