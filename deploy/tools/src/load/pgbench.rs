//! Runs pgbench: statements of a service, one transaction after another, on the service's own database.
//!
//! pgbench starts cold, so its first seconds are left out, like the warm-up of the other side.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use chassis_base::Clock;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use crate::database::Database;
use crate::measure::Span;
use crate::process::{Cpu, Watched, spent};
use crate::replay::Variable;

/// A script, and how often it is run in relation to the others.
#[derive(Clone, Debug)]
pub(crate) struct ScriptFile {
    pub path: PathBuf,
    pub weight: usize,
}

/// What is run: any of the files at a time, as the service connects.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub service: &'static str,
    pub role: String,
    pub files: Vec<ScriptFile>,
    pub variables: Vec<Variable>,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub per_second: f64,
    pub transactions: f64,
    pub cpu: Cpu,
}

pub(crate) async fn run(
    database: &Database,
    plan: &Plan,
    span: Span,
    watched: &Watched,
) -> Result<Outcome, String> {
    let warm_up = whole_seconds(span.warm_up);
    let measured = whole_seconds(span.measured);
    let mut command = database.pgbench(plan.service, &plan.role);
    // One second more: the line of the last second is not always printed.
    command.args(["-n", "-M", "prepared", "-j", "2", "-P", "1"]);
    command.args(["-T", &(warm_up + measured + 1).to_string(), "-c", &span.connections.to_string()]);
    // The time from which new ids count on.
    command.arg("-D").arg(format!("ms={}", Clock::system().now().timestamp_millis()));
    for variable in &plan.variables {
        command.arg("-D").arg(format!("{}={}", variable.name, variable.value));
    }
    for file in &plan.files {
        command.arg("-f").arg(format!("{}@{}", file.path.display(), file.weight));
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|fault| format!("pgbench: {fault}"))?;
    let stderr = child.stderr.take().ok_or("pgbench has no stderr")?;
    let mut lines = BufReader::new(stderr);
    let outcome = watch(&mut lines, warm_up, measured, watched).await?;
    let mut rest = String::new();
    let _ = lines.read_to_string(&mut rest).await;
    let status = child.wait().await.map_err(|fault| format!("pgbench: {fault}"))?;
    if !status.success() {
        return Err(format!("pgbench ended with {status}: {rest}"));
    }
    Ok(outcome)
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs().max(1)
}

/// Reads the lines of progress, one a second, and takes those of the measured time.
async fn watch(
    lines: &mut (impl AsyncBufReadExt + Unpin),
    warm_up: u64,
    measured: u64,
    watched: &Watched,
) -> Result<Outcome, String> {
    let mut other = String::new();
    let mut seconds = Vec::new();
    let mut before = Cpu::new();
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).await.map_err(|fault| fault.to_string())? == 0 {
            return Err(format!("pgbench ended before its time: {other}"));
        }
        let Some(progress) = progress(&line) else {
            other.push_str(&line);
            continue;
        };
        seconds.push(progress);
        let count = seconds.len() as u64;
        if count == warm_up {
            before = watched.cpu();
        } else if count == warm_up + measured {
            let cpu = spent(&before, &watched.cpu());
            return total(&seconds[usize::try_from(warm_up).unwrap_or(1) - 1..], cpu);
        }
    }
}

/// Sums up the seconds after the first, which says only when the others begin.
fn total(seconds: &[Progress], cpu: Cpu) -> Result<Outcome, String> {
    let transactions = seconds.windows(2).map(|pair| (pair[1].end - pair[0].end) * pair[1].rate).sum::<f64>();
    let (first, last) = seconds.first().zip(seconds.last()).ok_or("pgbench reported nothing")?;
    Ok(Outcome { per_second: transactions / (last.end - first.end), transactions, cpu })
}

/// What pgbench says every second.
#[derive(Debug, PartialEq)]
struct Progress {
    /// Seconds since the start.
    end: f64,
    /// Transactions a second since the line before.
    rate: f64,
}

/// The end and the rate of `progress: 2.0 s, 9184.9 tps, lat …`.
fn progress(line: &str) -> Option<Progress> {
    let mut parts = line.trim().strip_prefix("progress: ")?.split(", ");
    let end = parts.next()?.strip_suffix(" s")?.parse().ok()?;
    let rate = parts.next()?.strip_suffix(" tps")?.parse().ok()?;
    Some(Progress { end, rate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_progress_gives_its_time_and_rate() {
        let line = "progress: 2.0 s, 9184.9 tps, lat 0.108 ms stddev 0.044, 0 failed\n";
        assert_eq!(progress(line), Some(Progress { end: 2.0, rate: 9184.9 }));
        assert_eq!(progress("pgbench: error: client 3 aborted"), None);
    }

    #[tokio::test]
    async fn the_warm_up_is_left_out_of_the_rate() {
        let mut lines: &[u8] =
            b"pgbench (17)\nprogress: 1.0 s, 10.0 tps, lat\nprogress: 2.0 s, 100.0 tps, lat\n\
            progress: 4.0 s, 200.0 tps, lat\nprogress: 5.0 s, 9.0 tps, lat\n";
        let outcome = watch(&mut lines, 1, 2, &Watched::default()).await.unwrap();
        assert!((outcome.transactions - 500.0).abs() < 1e-6, "{outcome:?}");
        assert!((outcome.per_second - 500.0 / 3.0).abs() < 1e-6, "{outcome:?}");
    }

    #[tokio::test]
    async fn a_pgbench_that_fails_is_quoted() {
        let mut lines: &[u8] = b"pgbench: error: relation does not exist\n";
        let fault = watch(&mut lines, 1, 2, &Watched::default()).await.unwrap_err();
        assert!(fault.contains("relation does not exist"), "{fault}");
    }
}
