//! Ends the payments whose time is over: collections are paid or fail, checkouts expire.

use std::sync::Arc;

use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next};

use super::operations::{self, Ending};
use super::{NAME, rpc};
use crate::online::{Hand, Till};

/// How many payments one job ends.
const BATCH: usize = 50;

pub fn worker(till: Arc<Till>) -> Worker {
    let due = Due::new("billing.sandbox_payment work", "work.status in ('open', 'pending')", "work.ends_at");
    Worker::new(NAME, due, move |job| {
        let till = Arc::clone(&till);
        async move { run(&job, &till).await }
    })
}

async fn run(job: &Job, till: &Till) -> Result<Next, chassis_base::Error> {
    let ending = Ending { is_wanted: till.provider_of(job.account_id()).await? == NAME };
    for _ in 0..BATCH {
        let Some(ended) = job.write(&ending, operations::end_one).await? else { return Ok(Next::WhenDue) };
        rpc::tell(till, &Hand::Job(job), &ended).await;
    }
    Ok(Next::Now)
}
