//! Compares the logs of accounts with their records, and logs what they lack: see [`chassis_data::log::snapshot`]. Every
//! account once, and again while programs of the release before write beside this one, which shows in `audit`.

use std::time::Duration;

use chassis_data::log::snapshot::{SharedRecords, advance};

use crate::worker::{Due, Job, Next, Worker};

/// How many pages one job compares. Few, so that an account with many records does not hold up the others.
const PAGES: usize = 10;
/// How many accounts are compared at once: nobody waits for it.
const CONCURRENCY: usize = 2;
/// How often to look for accounts, besides the start of a process. That reads a row or two of each account, and nothing
/// else if all are done.
const INTERVAL: Duration = Duration::from_hours(1);

pub fn worker(records: SharedRecords) -> Worker {
    let due = Due::new(
        "account work left join snapshot done on done.account_id = work.account_id",
        "(done.account_id is null or done.kind is not null or exists (
            select from audit newer where newer.account_id = work.account_id and newer.id > done.seen))",
        "case when done.kind is null then coalesce(done.next_at, '2000-01-01'::timestamptz)
            else '2000-01-01'::timestamptz end",
    );
    let compare = move |job: Job| compare(job, records.clone());
    Worker::new("snapshot", due, compare).every(INTERVAL).concurrency(CONCURRENCY)
}

async fn compare(job: Job, records: SharedRecords) -> Result<Next, chassis_base::Error> {
    for _ in 0..PAGES {
        if job.write(&records, advance).await?.is_done {
            return Ok(Next::WhenDue);
        }
        if job.should_stop() {
            break;
        }
    }
    Ok(Next::Now)
}
