//! A service as a process of its own that can be killed, and a port that stays its own meanwhile.

#![expect(clippy::expect_used, reason = "a test that cannot start its service has to stop")]

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

use super::{environment, secret, service_database};

/// A running service; dropped, it is killed.
pub struct Process {
    child: Child,
    binary: &'static str,
    listen: SocketAddr,
    flags: Vec<String>,
}

impl Process {
    /// Starts the program `binary`, which tests know as `env!("CARGO_BIN_EXE_…")`.
    pub fn start(binary: &'static str, listen: SocketAddr, flags: &[&str]) -> Self {
        let flags = on_its_way(binary, flags);
        Self { child: spawn(binary, listen, &flags), binary, listen, flags }
    }

    /// SIGKILL, which leaves it no time for anything; then it starts anew.
    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.child = spawn(self.binary, self.listen, &self.flags);
    }

    /// SIGSTOP: it does nothing any more, and nobody is told.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// SIGCONT: it goes on as if no time had passed.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.expect("the program kill").success(), "a process of our own");
    }

    /// SIGKILL; without effect on one that was killed before.
    pub fn kill(&mut self) {
        self.child.kill().expect("a process of our own");
        self.child.wait().expect("a process that ends");
    }
}

/// The flags with the service's own way to the database that is named there.
fn on_its_way(binary: &str, flags: &[&str]) -> Vec<String> {
    let name = binary.rsplit('/').next().and_then(|name| name.strip_prefix("svc-"));
    let mut given: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let at = given.iter().position(|flag| flag == "--database-url");
    if let (Some(schema), Some(at)) = (name, at) {
        let way = service_database(&given[at + 1], schema).flags();
        given.splice(at..at + 2, way);
    }
    given
}

fn spawn(binary: &str, listen: SocketAddr, flags: &Vec<String>) -> Child {
    // Where they are is of interest to few.
    let known = flags.iter().any(|flag| flag == "--metrics-listen");
    let metrics: &[&str] = if known { &[] } else { &["--metrics-listen", "127.0.0.1:0"] };
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
        // Gone already is fine too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port below those that the system hands out: nobody takes it while a service is being restarted.
pub fn quiet_port() -> SocketAddr {
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).and_then(|l| l.local_addr()).ok();
    let start = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap_or_default();
    (start..start + 1_000).find_map(free).expect("a free port")
}
