//! Executes the queued commands that no caller waits for: those of a process that was killed, those whose provider
//! did not answer, and the scheduled refreshes.

use std::sync::Arc;

use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next};

use super::{Origin, PaymentProcessor};
use crate::online_payment::ProviderName;
use crate::online_payment::store::commands;

/// The number of commands that one job executes.
const BATCH: usize = 20;

pub(crate) fn worker(processor: Arc<PaymentProcessor>) -> Worker {
    let due = Due::new("billing.wish work", "work.provider = $argument", "work.next_at")
        .argument(processor.provider.name());
    Worker::new("payments", due, move |job| {
        let processor = Arc::clone(&processor);
        async move { run(&job, &processor).await }
    })
}

async fn run(job: &Job, processor: &PaymentProcessor) -> Result<Next, chassis_base::Error> {
    let provider = ProviderName(processor.provider.name());
    for _ in 0..BATCH {
        let Some(command) = job.write(&provider, commands::claim).await? else { return Ok(Next::WhenDue) };
        processor.execute(&Origin::Job(job), &command).await?;
    }
    Ok(Next::Now)
}
