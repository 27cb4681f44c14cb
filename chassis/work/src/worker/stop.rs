//! What the loops of background work have in common: when they end, and how long they wait for the database.

use std::time::Duration;

use chassis_base::Error;
use tokio::sync::watch;

/// Says that the workers are to stop, and how long their jobs may take to end.
pub(super) type Stop = watch::Receiver<Option<Duration>>;

/// Also when nobody is left to tell.
pub(super) async fn told_to_stop(stop: &mut Stop) {
    let _ = stop.wait_for(Option::is_some).await;
}

/// How long the loops wait for the database: longer than any statement may take there, so only for one that is gone
/// without a word.
pub(super) const DATABASE_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) async fn in_time<T>(asking: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(DATABASE_TIMEOUT, asking).await.map_err(|_| gone())?
}

/// The database does not answer.
pub(super) fn gone() -> Error {
    sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()).into()
}
