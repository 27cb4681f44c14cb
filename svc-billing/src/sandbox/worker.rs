//! Ends the payments whose time is over: collections are paid or fail, checkouts expire.

use std::sync::Arc;

use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next};

use super::operations::{self, Ending};
use super::{NAME, webhook};
use crate::processor::{Origin, PaymentProcessor};

/// The number of payments that one job ends.
const BATCH: usize = 50;

pub(crate) fn worker(processor: Arc<PaymentProcessor>) -> Worker {
    let due = Due::new("billing.sandbox_payment work", "work.status in ('open', 'pending')", "work.ends_at");
    Worker::new(NAME, due, move |job| {
        let processor = Arc::clone(&processor);
        async move { run(&job, &processor).await }
    })
}

async fn run(job: &Job, processor: &PaymentProcessor) -> Result<Next, chassis_base::Error> {
    let ending = Ending { is_allowed: processor.provider_for(job.account_id()).await? == NAME };
    for _ in 0..BATCH {
        let Some(ended) = job.write(&ending, operations::end_due).await? else { return Ok(Next::WhenDue) };
        webhook::notify(processor, &Origin::Job(job), &ended).await;
    }
    Ok(Next::Now)
}
