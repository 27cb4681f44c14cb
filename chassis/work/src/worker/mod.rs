//! Background work: the one mechanism for everything that no caller waits for.
//!
//! Accounts hash into partitions, a process leases partitions ([`lease`]) and works through the accounts in them that
//! have work due, several at once but never one account twice at the same time ([`drive`]). A job that only waits for
//! somebody outside leaves its [`slot`] to another account's. Knows nothing of what the work is.
//!
//! Nobody looks at all accounts to find those with work. Every commit wakes its account ([`wake`]), also in other
//! processes ([`exchange`]); of a woken account is asked when each worker is due for it ([`examine`], [`due`]); and now and
//! then all accounts are looked at for what comes due by itself ([`sweep`]).

mod backoff;
mod board;
mod definition;
mod drive;
mod due;
mod examine;
mod exchange;
mod job;
mod lease;
mod schedule;
mod settings;
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
pub use settings::WorkerSettings;
pub use timing::Timing;
pub use workers::Workers;
