//! Waiting until the services that a test started as processes are ready.

use std::time::Duration;

use gateway::testing::TestGateway;

/// Three minutes at the interval below: far longer than a process needs to start on a busy machine.
const MAX_ATTEMPTS: usize = 3_600;
const INTERVAL: Duration = Duration::from_millis(50);

/// Asks the gateway until every service behind it is ready.
///
/// # Panics
/// After the last attempt, with the last answer.
pub(crate) async fn until_ready(gateway: &TestGateway) {
    let visitor = gateway.api_with("");
    let mut ticks = tokio::time::interval(INTERVAL);
    let mut last = String::new();
    for _ in 0..MAX_ATTEMPTS {
        let answer = visitor.get("/readyz?mesh").await;
        if answer.status == 200 {
            return;
        }
        last = format!("{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        ticks.tick().await;
    }
    panic!("the services are not ready after {MAX_ATTEMPTS} attempts; the last answer was {last}")
}
