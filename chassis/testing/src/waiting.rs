//! Waiting for background work. The only place in the tests that uses real time: a test states a condition and
//! continues as soon as it holds.

use std::time::Duration;

const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Far longer than any condition takes; only a test that fails waits this long.
const TIMEOUT: Duration = Duration::from_mins(3);

/// Polls the condition until it holds.
///
/// # Panics
/// When the condition does not hold within three minutes.
pub async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let holds = async {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        while !condition().await {
            ticks.tick().await;
        }
    };
    assert!(tokio::time::timeout(TIMEOUT, holds).await.is_ok(), "this never came true: {what}");
}
