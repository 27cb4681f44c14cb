//! Waiting for what happens in the background. The one place in the tests that knows real time: a test says what is to
//! become true and goes on as soon as it is.

use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Far more than anything takes; only a test that has failed already waits this long.
const BOUND: Duration = Duration::from_mins(3);

/// Looks again and again until the condition holds.
///
/// # Panics
/// When it does not within three minutes.
pub async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let holds = async {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        while !condition().await {
            ticks.tick().await;
        }
    };
    assert!(tokio::time::timeout(BOUND, holds).await.is_ok(), "this never came true: {what}");
}
