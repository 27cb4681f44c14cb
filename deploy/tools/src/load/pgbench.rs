//! Runs pgbench: statements of a service, one transaction after another, on the service's own database.
//!
//! pgbench starts cold, so its first seconds are left out, like the warm-up of the other side.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use crate::database::Database;
use crate::measure::Span;
use crate::process::{Cpu, Watched, spent};

/// What is run: any of the files at a time, with these variables.
#[derive(Debug, Default)]
pub struct Plan {
    pub files: Vec<PathBuf>,
    pub variables: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct Outcome {
    pub per_second: f64,
    pub transactions: f64,
    pub cpu: Cpu,
}

pub async fn run(database: &Database, plan: &Plan, span: Span, watched: &Watched) -> Result<Outcome, String> {
    let (warm_up, measured) = (whole_seconds(span.warm_up), whole_seconds(span.measured));
    let mut command = database.command("pgbench");
    // One second more: the line of the last second is not always printed.
    command.args(["-n", "-M", "prepared", "-j", "2", "-P", "1"]);
    command.args(["-T", &(warm_up + measured + 1).to_string(), "-c", &span.connections.to_string()]);
    for (name, value) in &plan.variables {
        command.arg("-D").arg(format!("{name}={value}"));
    }
    for file in &plan.files {
        command.arg("-f").arg(file);
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

/// Our scripts, and the folder for copies with what pgbench cannot send as a value written out.
#[derive(Clone, Debug)]
pub struct Scripts {
    pub folder: PathBuf,
    pub work: PathBuf,
}

impl Scripts {
    pub fn new(folder: &Path, work: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(work).map_err(|fault| format!("{}: {fault}", work.display()))?;
        Ok(Self { folder: folder.to_owned(), work: work.to_owned() })
    }

    /// A copy of a script under another name, with each of the texts replaced.
    pub fn copy(&self, script: &str, name: &str, replace: &[(&str, &str)]) -> Result<PathBuf, String> {
        let original = self.folder.join(format!("{script}.sql"));
        let mut text =
            std::fs::read_to_string(&original).map_err(|fault| format!("{}: {fault}", original.display()))?;
        for (from, to) in replace {
            text = text.replace(from, to);
        }
        let copy = self.work.join(format!("{name}.sql"));
        std::fs::write(&copy, text).map_err(|fault| format!("{}: {fault}", copy.display()))?;
        Ok(copy)
    }
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
    let mut seen = Vec::new();
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
        seen.push(progress);
        let count = seen.len() as u64;
        if count == warm_up {
            before = watched.cpu();
        } else if count == warm_up + measured {
            let cpu = spent(&before, &watched.cpu());
            return total(&seen[usize::try_from(warm_up).unwrap_or(0) - 1..], cpu);
        }
    }
}

/// Sums up the seconds after the first, which says only when the others begin.
fn total(seen: &[(f64, f64)], cpu: Cpu) -> Result<Outcome, String> {
    let transactions = seen.windows(2).map(|pair| (pair[1].0 - pair[0].0) * pair[1].1).sum::<f64>();
    let (first, last) = seen.first().zip(seen.last()).ok_or("pgbench reported nothing")?;
    Ok(Outcome { per_second: transactions / (last.0 - first.0), transactions, cpu })
}

/// The end and the rate of `progress: 2.0 s, 9184.9 tps, lat …`.
fn progress(line: &str) -> Option<(f64, f64)> {
    let mut parts = line.trim().strip_prefix("progress: ")?.split(", ");
    let end = parts.next()?.strip_suffix(" s")?.parse().ok()?;
    let rate = parts.next()?.strip_suffix(" tps")?.parse().ok()?;
    Some((end, rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_progress_gives_its_time_and_rate() {
        let line = "progress: 2.0 s, 9184.9 tps, lat 0.108 ms stddev 0.044, 0 failed\n";
        assert_eq!(progress(line), Some((2.0, 9184.9)));
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
