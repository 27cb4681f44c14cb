//! A service in a separate process that can be killed, and a port that stays free while it restarts.

#![expect(clippy::expect_used, reason = "a test that cannot start its service has to stop")]

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};

use super::pooler::service_database;
use super::running::{environment, secret};

/// A running service, which is killed when the value is dropped.
pub struct Process {
    child: Child,
    binary: &'static str,
    listen: SocketAddr,
    flags: Vec<String>,
}

impl Process {
    /// Starts the program `binary`, which tests get from `env!("CARGO_BIN_EXE_…")`.
    pub fn start(binary: &'static str, listen: SocketAddr, flags: &[&str]) -> Self {
        let flags = with_service_database(binary, flags);
        Self { child: spawn(binary, listen, &flags), binary, listen, flags }
    }

    /// Sends SIGKILL, which allows no cleanup, and starts the service again.
    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.child = spawn(self.binary, self.listen, &self.flags);
    }

    /// Sends SIGSTOP: the process freezes, and its connections stay open.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Sends SIGCONT: the process continues where it was frozen.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.expect("the program kill").success(), "a process of our own");
    }

    /// Sends SIGKILL; has no effect on a process that has already ended.
    pub fn kill(&mut self) {
        self.child.kill().expect("a process of our own");
        self.child.wait().expect("a process that ends");
    }
}

/// The flags with `--database-url` replaced by the service's own address of that database.
fn with_service_database(binary: &str, flags: &[&str]) -> Vec<String> {
    let name = binary.rsplit('/').next().and_then(|name| name.strip_prefix("svc-"));
    let mut given: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let at = given.iter().position(|flag| flag == "--database-url");
    if let (Some(schema), Some(at)) = (name, at) {
        let database = service_database(&given[at + 1], schema).flags();
        given.splice(at..at + 2, database);
    }
    given
}

fn spawn(binary: &str, listen: SocketAddr, flags: &Vec<String>) -> Child {
    // Few tests read metrics, so the port is free unless a test sets it.
    let is_set = flags.iter().any(|flag| flag == "--metrics-listen");
    let metrics: &[&str] = if is_set { &[] } else { &["--metrics-listen", "127.0.0.1:0"] };
    Command::new(binary)
        .args(["serve", "--context-secret", secret(), "--log", "error", "--listen", &listen.to_string()])
        .args(metrics)
        .args(environment(flags))
        .args(flags)
        .stdout(Stdio::null())
        .spawn()
        .expect("the service's own program")
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A free port that stays this test's until it ends, also while its service restarts. It is below the ephemeral range,
/// so the system does not assign it, and no other test gets it: the UDP port of the same number is its reservation.
///
/// # Panics
/// When there is none.
pub fn quiet_port() -> SocketAddr {
    let reserved = |port: u16| {
        let reservation = UdpSocket::bind(("127.0.0.1", port)).ok()?;
        let address =
            TcpListener::bind(("127.0.0.1", port)).and_then(|listener| listener.local_addr()).ok()?;
        std::mem::forget(reservation);
        Some(address)
    };
    let start = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap_or_default();
    (start..start + 1_000).find_map(reserved).expect("a free port")
}
