//! How a process comes to its end, in two stages.

use std::time::Duration;

use clap::Args;
use tokio::sync::watch;

/// How long the stages of a stop last.
#[derive(Args, Clone, Debug)]
pub struct StopSettings {
    /// First stage of a stop: answer "not ready" for so many milliseconds while still serving
    #[arg(long, env = "DRAIN_MS", default_value_t = 0, global = true)]
    pub drain_ms: u64,

    /// Second stage of a stop: finish what is in progress within so many milliseconds
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
    /// Finishing what is in progress.
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
        tracing::info!("asked to stop");
        send.send_replace(Stage::Draining);
        // Kept open: a closed channel would say nothing about the stage.
        std::future::pending::<()>().await;
    });
    Ok(receive)
}

/// Resolves when the process is asked to stop.
pub async fn asked_to_stop(mut stop: watch::Receiver<Stage>) {
    // An error means that the sender is gone, and with it the process.
    let _ = stop.wait_for(|stage| *stage >= Stage::Draining).await;
}
