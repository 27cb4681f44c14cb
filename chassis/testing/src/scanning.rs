//! Having a service tell what came about by time passing, without waiting for its hour.

#![expect(clippy::expect_used, reason = "a test that cannot ask its service has to stop")]

use chrono::{DateTime, Utc};
use proto::scans::scan_service_client::ScanServiceClient;
use proto::scans::{RunScansRequest, SetThresholdRequest};

use super::{Started, TestCaller, eventually};

/// Has the account looked through, from beginning to end. Background work of the service must be running.
///
/// # Panics
/// When the service does not do so.
pub async fn look_through(service: &Started, caller: &TestCaller) {
    let mut client = ScanServiceClient::new(service.channel());
    client.run_scans(caller.request(RunScansRequest {})).await.expect("a look that is asked for");
    has_looked(service, caller).await;
}

/// Waits for the end of a look that was asked for.
async fn has_looked(service: &Started, caller: &TestCaller) {
    let ended = async || {
        let mut connection = service.runtime.db.acquire().await.expect("a connection");
        let next: DateTime<Utc> = sqlx::query_scalar("select next_at from scan_turn where account_id = $1")
            .bind(caller.account.id)
            .fetch_one(&mut *connection)
            .await
            .expect("the account's turn");
        next > caller.clock.now()
    };
    eventually("the account was looked through", ended).await;
}

/// Sets a threshold of the account, or goes back to the default, and waits for the look that follows.
///
/// # Panics
/// When the service refuses it.
pub async fn set_threshold(service: &Started, caller: &TestCaller, event: &str, value: Option<i32>) {
    let request = caller.request(SetThresholdRequest { event: event.to_owned(), value });
    let mut client = ScanServiceClient::new(service.channel());
    client.set_threshold(request).await.expect("a threshold that can be set");
    has_looked(service, caller).await;
}
