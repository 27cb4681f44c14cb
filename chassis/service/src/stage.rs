//! The two stages in which a process stops.

use std::time::Duration;

use clap::Args;
use tokio::sync::watch;

/// The durations of the stages of a stop.
#[derive(Args, Clone, Debug)]
pub struct StopSettings {
    /// First stage of a stop: report "not ready" for this many milliseconds while still serving
    #[arg(long, env = "DRAIN_MS", default_value_t = 0, global = true)]
    pub drain_ms: u64,

    /// Second stage of a stop: finish requests in progress within this many milliseconds
    #[arg(long, env = "GRACE_MS", default_value_t = 15_000, global = true)]
    pub grace_ms: u64,
}

impl StopSettings {
    pub fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }

    pub fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }
}

/// How far a stop has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Running,
    /// Still serving, but no longer ready for more.
    Draining,
    /// Finishing requests in progress.
    Stopping,
}

/// Turns to `Draining` on SIGTERM or Ctrl-C.
pub fn stop_signal() -> Result<watch::Receiver<Stage>, String> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| format!("no signals: {error}"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| format!("no signals: {error}"))?;
    let (send, receive) = watch::channel(Stage::Running);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stop signal received");
        send.send_replace(Stage::Draining);
        // The sender stays alive, so that no receiver finds a closed channel.
        std::future::pending::<()>().await;
    });
    Ok(receive)
}

/// Resolves when the process is asked to stop.
pub async fn asked_to_stop(mut stop: watch::Receiver<Stage>) {
    // An error means that the sender was dropped, which happens only when the process ends.
    let _ = stop.wait_for(|stage| *stage >= Stage::Draining).await;
}
