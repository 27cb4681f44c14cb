//! Where a command is executed. A file of its own, because the execution, the webhooks and the sandbox share it.

use chassis_base::Account;
use chassis_data::Db;
use chassis_rpc::Context;
use chassis_work::worker::Job;
use chrono::{DateTime, Utc};

use super::operations::{self, CommandOutcome};
use crate::error::Error;

/// Within a call, or by a worker that holds the account's lease.
pub(crate) enum Origin<'a> {
    Call(&'a Context),
    Job(&'a Job),
}

impl Origin<'_> {
    pub(crate) fn account(&self) -> &Account {
        match self {
            Self::Call(context) => context.account(),
            Self::Job(job) => job.account(),
        }
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        match self {
            Self::Call(context) => context.clock.now(),
            Self::Job(job) => job.now(),
        }
    }

    /// Records the outcome of a command in a transaction of its own.
    pub(crate) async fn record(&self, db: &Db, outcome: &CommandOutcome) -> Result<(), Error> {
        match self {
            Self::Call(context) => {
                // Without its idempotency key: the answer that a repeat of the call gets is stored by another
                // transaction.
                let context = Context { idempotency_key: None, ..(*context).clone() };
                Ok(db.amend(&context, outcome, &(), operations::record).await?)
            }
            Self::Job(job) => Ok(job.write(outcome, operations::record).await?),
        }
    }
}
