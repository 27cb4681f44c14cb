//! Superuser access to the server that tests run on.

#![expect(clippy::expect_used, reason = "a test that cannot reach its server has to stop")]

use std::path::Path;
use std::str::FromStr;
use std::sync::OnceLock;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection};

/// The address of the test server, which `deploy/test` sets. Without it a server is started.
const VARIABLE: &str = "TEST_DATABASE_URL";

pub(super) fn server_options() -> PgConnectOptions {
    static URL: OnceLock<String> = OnceLock::new();
    let url = URL.get_or_init(|| std::env::var(VARIABLE).unwrap_or_else(|_| start_server()));
    PgConnectOptions::from_str(url).expect("a postgres address")
}

/// Starts the disposable server of this checkout, or finds it running, so that `cargo test` works without set-up.
fn start_server() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).expect("the checkout");
    let started = std::process::Command::new(root.join("deploy/postgres"))
        .args(["start", "--fast"])
        .arg(root.join(".local/test-postgres"))
        .output()
        .expect("deploy/postgres");
    let report = String::from_utf8_lossy(&started.stderr);
    assert!(started.status.success(), "no Postgres for tests: {report}");
    String::from_utf8_lossy(&started.stdout).trim().to_owned()
}

pub(super) fn url_of(database: &str) -> String {
    server_options().database(database).to_url_lossy().to_string()
}

pub(super) async fn connect_to_server() -> PgConnection {
    PgConnection::connect_with(&server_options()).await.expect("the server for tests")
}

pub(super) async fn execute(connection: &mut PgConnection, sql: String) {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.expect("a statement of the test's set-up");
}
