//! Background work: the single mechanism for everything that no caller waits for.
//!
//! Accounts hash into partitions. A process leases partitions ([`keeper`], [`lease`]) and runs a job for each of their
//! accounts that has work due: several accounts in parallel, but never two jobs of a worker for the same account
//! ([`drive`]). A job that only waits for an external system gives its [`slot`] to another account. This module does
//! not depend on what the work is.
//!
//! Work is not found by polling all accounts. Every commit wakes its account ([`wake`]), also in other processes
//! ([`exchange`]), as soon as its log entries have positions ([`sequencer`]). For a woken account, one query returns
//! when each worker is due that commits wake ([`examine`], [`due`]). A rare sweep over all accounts finds work that
//! comes due without a commit, and the work of the other workers ([`sweep`]).

mod backoff;
mod board;
mod definition;
mod drive;
mod due;
mod examine;
mod exchange;
mod holding;
mod job;
mod keeper;
mod lease;
mod schedule;
mod sequencer;
mod settings;
mod share;
mod slot;
mod stop;
mod sweep;
mod timing;
mod wake;
mod workers;

pub use backoff::backoff;
pub use definition::Worker;
pub use due::{Due, IMMEDIATELY};
pub use job::{Job, Next};
pub use sequencer::recovery_worker;
pub use settings::WorkerSettings;
pub use timing::Timing;
pub use workers::Workers;
