//! Runs the scans of a service, which emit the events of passing time, without waiting for their schedule.

#![expect(clippy::expect_used, reason = "a test that cannot ask its service has to stop")]

use chrono::{DateTime, Utc};
use proto::scans::scan_service_client::ScanServiceClient;
use proto::scans::{RunScansRequest, SetThresholdRequest};

use super::running::{Started, TestCaller};
use super::waiting::eventually;

/// Runs all scans of the account and waits for their end. Background work of the service must be running.
///
/// # Panics
/// When the service refuses the request or the scans do not end.
pub async fn run_scans(service: &Started, caller: &TestCaller) {
    let mut client = ScanServiceClient::new(service.channel());
    client.run_scans(caller.request(RunScansRequest {})).await.expect("a scan that can be requested");
    await_scan(service, caller).await;
}

/// Waits for the end of a scan that was requested.
async fn await_scan(service: &Started, caller: &TestCaller) {
    let ended = async || {
        let mut connection = service.runtime.db.acquire().await.expect("a connection");
        let next: DateTime<Utc> = sqlx::query_scalar("select next_at from scan_turn where account_id = $1")
            .bind(caller.account.id)
            .fetch_one(&mut *connection)
            .await
            .expect("the account's turn");
        next > caller.clock.now()
    };
    eventually("the account was scanned", ended).await;
}

/// Sets a threshold of the account, or resets it to the default, and waits for the scan that follows.
///
/// # Panics
/// When the service refuses the threshold.
pub async fn set_threshold(service: &Started, caller: &TestCaller, event: &str, value: Option<i32>) {
    let request = caller.request(SetThresholdRequest { event: event.to_owned(), value });
    let mut client = ScanServiceClient::new(service.channel());
    client.set_threshold(request).await.expect("a threshold that can be set");
    await_scan(service, caller).await;
}
