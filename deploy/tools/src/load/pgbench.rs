//! Runs pgbench: statements of a service, one transaction after another, on the service's own database.
//!
//! pgbench starts cold, so its first seconds are left out, like the warm-up of the other side.

use std::process::Stdio;
use std::time::Duration;

use chassis_base::Clock;
use deploy_tools::Result;
use regex_lite::Regex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use crate::database::Database;
use crate::measure::{Outcome, Span};
use crate::process::{Watched, spent};

/// What is run: any of the files at a time, as the service connects.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub database: Database,
    pub service: String,
    pub role: String,
    /// As pgbench takes them: `path@weight`, where the weight says how often it is run in relation to the others.
    pub files: Vec<String>,
    /// Values of the variables `value0`, `value1`, ….
    pub values: Vec<String>,
}

pub(crate) async fn run(plan: &Plan, span: Span, watched: &Watched) -> Result<Outcome> {
    let [warm_up, measured] = [span.warm_up, span.measured].map(|time| time.as_secs().max(1));
    let mut command = plan.database.pgbench(&plan.service, &plan.role);
    // One second more: the line of the last second is not always printed.
    command.args(["-n", "-M", "prepared", "-j", "2", "-P", "1"]);
    command.args(["-T", &(warm_up + measured + 1).to_string(), "-c", &span.connections.to_string()]);
    // The time from which new ids count on.
    command.arg("-D").arg(format!("ms={}", Clock::system().now().timestamp_millis()));
    for (number, value) in plan.values.iter().enumerate() {
        command.arg("-D").arg(format!("value{number}={value}"));
    }
    for file in &plan.files {
        command.args(["-f", file]);
    }
    let unusable = |fault: std::io::Error| format!("pgbench: {fault}");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(unusable)?;
    let mut lines = BufReader::new(child.stderr.take().ok_or("pgbench has no stderr")?);
    let outcome = watch(&mut lines, warm_up, measured, watched).await?;
    let mut rest = String::new();
    let _ = lines.read_to_string(&mut rest).await;
    let status = child.wait().await.map_err(unusable)?;
    if status.success() { Ok(outcome) } else { Err(format!("pgbench ended with {status}: {rest}").into()) }
}

/// Reads the lines of progress and takes those of the measured time: `progress: 2.0 s, 9184.9 tps, lat …` has a moment and
/// the rate since the line before. There is one a second, or fewer on a busy machine.
async fn watch(
    lines: &mut (impl AsyncBufReadExt + Unpin),
    warm_up: u64,
    measured: u64,
    watched: &Watched,
) -> Result<Outcome> {
    let progress = Regex::new(r"^progress: ([\d.]+) s, ([\d.]+) tps")?;
    let [warm_up, measured] = [warm_up, measured].map(|seconds| Duration::from_secs(seconds).as_secs_f64());
    let (mut other, mut before) = (String::new(), None);
    let (mut begin, mut end, mut transactions) = (0.0, 0.0, 0.0);
    while end < warm_up + measured {
        let mut line = String::new();
        if lines.read_line(&mut line).await? == 0 {
            return Err(format!("pgbench ended before its time: {other}").into());
        }
        let figure = |text: &str| text.parse::<f64>().unwrap_or(0.0);
        let Some([now, rate]) = progress.captures(&line).map(|found| found.extract().1.map(figure)) else {
            other.push_str(&line);
            continue;
        };
        if before.is_some() {
            transactions += (now - end) * rate;
        } else if now >= warm_up {
            begin = now;
            before = Some(watched.cpu());
        }
        end = now;
    }
    let cpu = spent(&before.unwrap_or_default(), &watched.cpu());
    let per_second = transactions / (end - begin);
    Ok(Outcome { requests: transactions, per_second, cpu, p50_ms: None, p99_ms: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_warm_up_is_left_out_of_the_rate() {
        let mut lines: &[u8] =
            b"pgbench (17)\nprogress: 1.0 s, 10.0 tps, lat\nprogress: 2.0 s, 100.0 tps, lat\n\
            progress: 4.0 s, 200.0 tps, lat\nprogress: 5.0 s, 9.0 tps, lat\n";
        let outcome = watch(&mut lines, 1, 2, &Watched::default()).await.unwrap();
        assert!((outcome.requests - 500.0).abs() < 1e-6, "{outcome:?}");
        assert!((outcome.per_second - 500.0 / 3.0).abs() < 1e-6, "{outcome:?}");
    }

    #[tokio::test]
    async fn a_pgbench_that_fails_is_quoted() {
        let mut lines: &[u8] = b"pgbench: error: relation does not exist\n";
        let fault = watch(&mut lines, 1, 2, &Watched::default()).await.unwrap_err().to_string();
        assert!(fault.contains("relation does not exist"), "{fault}");
    }
}
