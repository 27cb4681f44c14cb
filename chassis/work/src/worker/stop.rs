//! Shared by the loops of background work: the stop signal and the database timeout.

use std::time::Duration;

use chassis_base::Error;
use tokio::sync::watch;

/// The stop signal: `Some` with the grace period for running jobs once the workers must stop.
pub(super) type Stop = watch::Receiver<Option<Duration>>;

/// Waits for the stop signal. A dropped sender counts as one.
pub(super) async fn stopped(stop: &mut Stop) {
    let _ = stop.wait_for(Option::is_some).await;
}

/// How long the loops wait for the database. Longer than the statement timeout, so it only ends a wait for a server
/// that no longer answers.
pub(super) const DATABASE_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) async fn in_time<T>(query: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(DATABASE_TIMEOUT, query).await.map_err(|_| gone())?
}

/// The error for a database that does not answer in time.
pub(super) fn gone() -> Error {
    sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()).into()
}
