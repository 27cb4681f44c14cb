//! A Postgres server for one test, which can pause it, crash it and start it again.

#![expect(clippy::expect_used, reason = "a test that cannot get its server has to stop")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sqlx::{Connection, PgConnection};

use super::waiting::eventually;

/// A private server; deleted with the value.
pub struct TestServer {
    folder: PathBuf,
    url: String,
    /// The process id of the postmaster.
    process: String,
}

impl TestServer {
    /// Creates and starts a server.
    pub async fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("postgres-{}", uuid::Uuid::new_v4().simple()));
        let mut server = Self { folder, url: String::new(), process: String::new() };
        server.start_again().await;
        server
    }

    /// The superuser's address; the same after a crash.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Starts the server after a crash, at the same address.
    pub async fn start_again(&mut self) {
        let started = self.command(&["start", "--fast"]);
        let report = String::from_utf8_lossy(&started.stderr);
        assert!(started.status.success(), "no Postgres: {report}");
        String::from_utf8_lossy(&started.stdout).trim().clone_into(&mut self.url);
        let mut connection = PgConnection::connect(&self.url).await.expect("the test's own server");
        let data: String = sqlx::query_scalar("select current_setting('data_directory')")
            .fetch_one(&mut connection)
            .await
            .expect("a setting");
        let file = std::fs::read_to_string(Path::new(&data).join("postmaster.pid")).expect("its process");
        file.lines().next().unwrap_or_default().clone_into(&mut self.process);
    }

    /// Ends every session immediately and without a checkpoint, as a crash does.
    pub async fn crash(&self) {
        signal("QUIT", std::slice::from_ref(&self.process));
        eventually("the server is gone", async || !Path::new("/proc").join(&self.process).exists()).await;
    }

    /// Freezes all processes of the server: connections stay open but get no response. Returns the process ids, for
    /// [`go_on`](Self::go_on).
    pub fn stand_still(&self) -> Vec<String> {
        // The postmaster is stopped before its children, so that it cannot start new ones.
        signal("STOP", std::slice::from_ref(&self.process));
        let children = Command::new("pgrep").args(["-P", &self.process]).output().expect("pgrep");
        let mut processes: Vec<String> =
            String::from_utf8_lossy(&children.stdout).split_whitespace().map(str::to_owned).collect();
        signal("STOP", &processes);
        processes.push(self.process.clone());
        processes
    }

    pub fn go_on(processes: &[String]) {
        signal("CONT", processes);
    }

    fn command(&self, arguments: &[&str]) -> Output {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).expect("the checkout");
        Command::new(root.join("deploy/postgres"))
            .args(arguments)
            .arg(&self.folder)
            .output()
            .expect("deploy/postgres")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.command(&["wipe"]);
    }
}

fn signal(name: &str, processes: &[String]) {
    // The signal fails for a process that has just ended, which is harmless.
    let _ = Command::new("kill").arg(format!("-{name}")).args(processes).output();
}
