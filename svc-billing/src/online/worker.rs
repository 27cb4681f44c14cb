//! Takes up the wishes that nobody waits for: those left by a process that was killed, those whose provider did not
//! answer, and the questions about what is still open.

use std::sync::Arc;

use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next};

use super::perform::{Hand, Till};
use super::{By, wish};

/// How many wishes one job fulfils.
const BATCH: usize = 20;

pub fn worker(till: Arc<Till>) -> Worker {
    let due = Due::new("billing.wish work", "work.provider = $argument", "work.next_at")
        .argument(till.provider.name());
    Worker::new("payments", due, move |job| {
        let till = Arc::clone(&till);
        async move { run(&job, &till).await }
    })
}

async fn run(job: &Job, till: &Till) -> Result<Next, chassis_base::Error> {
    let provider = By(till.provider.name());
    for _ in 0..BATCH {
        let Some(wish) = job.write(&provider, wish::claim).await? else { return Ok(Next::WhenDue) };
        till.fulfil(&Hand::Job(job), &wish).await?;
    }
    Ok(Next::Now)
}
