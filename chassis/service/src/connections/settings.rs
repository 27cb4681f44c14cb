//! The settings of the connections of a port.

use std::time::Duration;

use clap::Args;

/// Limits of the connections to a process, in number and in time.
#[derive(Args, Clone, Debug)]
pub struct ConnectionSettings {
    /// Maximum number of connections to the port for calls. Above it, the connection that has been idle longest is
    /// closed, or the new one is refused when none is idle. Never more than half of the files that the process may open
    #[arg(long, env = "MAX_CONNECTIONS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..), global = true)]
    pub max_connections: u32,

    /// How long a new connection may take to send the head of its first request, and an HTTP/1 request that has begun
    /// to send the rest of its head, in milliseconds
    #[arg(long, env = "HEAD_TIMEOUT_MS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..), global = true)]
    pub head_timeout_ms: u32,

    /// A connection without a request in progress is closed after this many milliseconds; longer than the keep-alive of
    /// proxies in front
    #[arg(long, env = "IDLE_TIMEOUT_MS", default_value_t = 75_000, value_parser = clap::value_parser!(u32).range(1..), global = true)]
    pub idle_timeout_ms: u32,

    /// A connection whose client reads nothing of a response for this many milliseconds is closed
    #[arg(long, env = "WRITE_TIMEOUT_MS", default_value_t = 30_000, value_parser = clap::value_parser!(u32).range(1..), global = true)]
    pub write_timeout_ms: u32,
}

/// How long a connection may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    pub head: Duration,
    pub idle: Duration,
    pub write: Duration,
}

impl ConnectionSettings {
    pub fn timeouts(&self) -> Timeouts {
        let milliseconds = |count: u32| Duration::from_millis(count.into());
        Timeouts {
            head: milliseconds(self.head_timeout_ms),
            idle: milliseconds(self.idle_timeout_ms),
            write: milliseconds(self.write_timeout_ms),
        }
    }
}
