//! Works through an account's due things, several at once. One that takes long holds up none of the others: as soon as
//! there is room, what has come due meanwhile is begun. Knows nothing of what the things are.

use std::sync::Arc;
use std::time::Duration;

use chassis::Error;
use chassis::worker::{Due, Job, Next, Worker};
use tokio::task::JoinSet;
use uuid::Uuid;

/// How often to look for more while something is being done.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Things of one account in one turn; then others have theirs.
const TURN: usize = 200;

#[tonic::async_trait]
pub(crate) trait Work: Send + Sync + 'static {
    /// Ids of what is due, the longest waiting first, at most `most` and without those in `busy`.
    async fn due(&self, job: &Job, busy: &[Uuid], most: i64) -> Result<Vec<Uuid>, Error>;

    /// Does one of them as far as that goes now.
    async fn perform(&self, job: &Job, id: Uuid) -> Result<(), Error>;
}

/// A worker that does up to `at_once` things of an account at the same time.
pub(crate) fn worker<W: Work>(name: &'static str, due: Due, at_once: usize, work: Arc<W>) -> Worker {
    Worker::new(name, due, move |job| turn(job, at_once, Arc::clone(&work)))
}

async fn turn<W: Work>(job: Job, at_once: usize, work: Arc<W>) -> Result<Next, Error> {
    // Dropped with the job, as a kill would: what was begun is taken up by whoever comes next.
    let mut doing: JoinSet<(Uuid, Result<(), Error>)> = JoinSet::new();
    let (mut busy, mut begun, mut failed): (Vec<Uuid>, usize, Option<Error>) = (Vec::new(), 0, None);
    loop {
        let room = at_once.saturating_sub(doing.len()).min(TURN.saturating_sub(begun));
        if room > 0 && failed.is_none() {
            match work.due(&job, &busy, i64::try_from(room).unwrap_or(i64::MAX)).await {
                Ok(due) => {
                    for id in due {
                        let (job, work) = (job.clone(), Arc::clone(&work));
                        doing.spawn(async move { (id, work.perform(&job, id).await) });
                        busy.push(id);
                        begun += 1;
                    }
                }
                Err(error) => failed = Some(error),
            }
        }
        if doing.is_empty() {
            break;
        }
        tokio::select! {
            Some(ended) = doing.join_next() => match ended {
                Ok((id, ended)) => {
                    busy.retain(|known| *known != id);
                    failed = failed.or(ended.err());
                }
                // It stays among the busy ones, so that it is not begun again in this turn.
                Err(error) => failed = Some(Error::Internal(format!("a thing could not be done: {error}"))),
            },
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
    match failed {
        Some(error) => Err(error),
        None if begun >= TURN => Ok(Next::Now),
        None => Ok(Next::WhenDue),
    }
}
