//! Removes the bytes of deleted files. The request that deletes a file removes its bytes at its end; this worker
//! removes the bytes that were left, because the object store could not be reached or the process ended.

use chassis_work::worker::{Due, IMMEDIATELY, Job, Next};
use chassis_work::{Files, Worker};

use super::operations::{self, RemovedFiles};
use super::store;

/// How many files one run removes.
const BATCH: i64 = 100;

pub(crate) fn worker(files: Files) -> Worker {
    let due =
        Due::new("work.file work", "work.deleted_at is not null and work.removed_at is null", IMMEDIATELY);
    Worker::new("file-removal", due, move |job: Job| {
        let files = files.clone();
        async move { run(&files, &job).await }
    })
}

async fn run(files: &Files, job: &Job) -> Result<Next, chassis_base::Error> {
    let pending = job
        .db()
        .read(async |connection| store::list_pending_removals(connection, job.account_id(), BATCH).await)
        .await?;
    let is_full = i64::try_from(pending.len()).is_ok_and(|count| count >= BATCH);
    let mut removed = Vec::new();
    for file in pending {
        // A generated file that was made again has the same key: its bytes are those of the new row and stay.
        if !file.is_shared {
            operations::remove_bytes(files, job.account_id(), &file.key).await?;
        }
        removed.push(file.id);
    }
    // A crash before this makes the next run remove the same bytes again, which has no effect.
    job.write(&RemovedFiles(removed), operations::mark_removed).await?;
    Ok(if is_full { Next::Now } else { Next::WhenDue })
}
