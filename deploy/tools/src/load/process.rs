//! What processes use: CPU time and resident memory, read from `/proc`. Where there is none (macOS), nothing is known and
//! the columns stay empty.

use std::collections::BTreeMap;
use std::fs;

/// `/proc` counts CPU time in these, 100 a second on every Linux we run on (`getconf CLK_TCK`).
const TICK_MS: f64 = 10.0;

/// How often a cluster is read whose backends end meanwhile, before its CPU time is unknown.
const READINGS: usize = 10;

/// The process of this name is the first one of the database cluster, whose processes count together.
pub(crate) const POSTGRES: &str = "postgres";
/// This program.
pub(crate) const LOAD: &str = "load";

/// Milliseconds of CPU time, by process name.
pub(crate) type Cpu = BTreeMap<String, f64>;
/// Resident megabytes, by process name.
pub(crate) type Memory = BTreeMap<String, f64>;

/// A program that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub name: String,
    pub pid: u32,
}

/// The processes under observation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched(pub Vec<Process>);

impl Watched {
    /// CPU time used so far. Two of these and [`spent`] give what a round cost.
    pub(crate) fn cpu(&self) -> Cpu {
        let own = Process { name: LOAD.to_owned(), pid: std::process::id() };
        let used = |process: &Process| match process.name.as_str() {
            POSTGRES => cluster_cpu(process.pid),
            _ => Some(Stat::of(process.pid)?.own_ms),
        };
        let known = |process: &Process| Some((process.name.clone(), used(process)?));
        self.0.iter().chain([&own]).filter_map(known).collect()
    }

    /// Of the database cluster: what each process has for itself, and the shared buffers once.
    pub(crate) fn memory(&self) -> Memory {
        let resident = |process: &Process| match process.name.as_str() {
            POSTGRES => {
                let pids = children_of(process.pid).into_iter().chain([process.pid]);
                let statuses: Vec<String> = pids.filter_map(status_of).collect();
                let field = |name| statuses.iter().filter_map(move |status| megabytes(status, name));
                Some(field("RssAnon").sum::<f64>() + field("RssShmem").reduce(f64::max)?)
            }
            _ => megabytes(&status_of(process.pid)?, "VmRSS"),
        };
        let known = |process: &Process| Some((process.name.clone(), resident(process)?));
        self.0.iter().filter_map(known).collect()
    }
}

/// What was used between two observations.
pub(crate) fn spent(before: &Cpu, after: &Cpu) -> Cpu {
    let since = |(name, end): (&String, &f64)| Some((name.clone(), end - before.get(name)?));
    after.iter().filter_map(since).collect()
}

/// A backend that ends is added to the postmaster's own account of its children, so nothing gets lost. One that ends while
/// this reads would be in neither, or in both: then it reads again.
fn cluster_cpu(postmaster: u32) -> Option<f64> {
    let mut before = Stat::of(postmaster)?;
    for _ in 0..READINGS {
        let living: f64 =
            children_of(postmaster).into_iter().filter_map(Stat::of).map(|stat| stat.own_ms).sum();
        let after = Stat::of(postmaster)?;
        if after.reaped_ms <= before.reaped_ms {
            return Some(after.own_ms + after.reaped_ms + living);
        }
        before = after;
    }
    None
}

fn children_of(parent: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| Stat::of(*pid).is_some_and(|stat| stat.parent == parent)).collect()
}

fn status_of(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/status")).ok()
}

/// The parts of `/proc/PID/stat` that matter here.
#[derive(Debug, PartialEq)]
struct Stat {
    parent: u32,
    own_ms: f64,
    /// Of children that have ended.
    reaped_ms: f64,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The second field is the program's name in parentheses, and may itself contain spaces and parentheses.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let ms = |index: usize| Some(fields.get(index)?.parse::<f64>().ok()? * TICK_MS);
        let (own_ms, reaped_ms) = (ms(11)? + ms(12)?, ms(13)? + ms(14)?);
        Some(Self { parent: fields.get(1)?.parse().ok()?, own_ms, reaped_ms })
    }
}

/// Of a line such as `VmRSS:     12345 kB` of `/proc/PID/status`.
fn megabytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_past_a_name_with_parentheses() {
        let line =
            "4711 (svc) odd (name) S 42 4711 4711 0 -1 4194560 1500 900 0 0 120 30 7 5 20 0 9 0 100 1 2";
        assert_eq!(Stat::parse(line), Some(Stat { parent: 42, own_ms: 1500.0, reaped_ms: 120.0 }));
        let cut_short = Stat::parse("4711 (svc) S 42 4711 4711 0 -1");
        assert_eq!(cut_short, None, "it is unknown and not zero");
    }

    #[test]
    fn memory_is_read_by_its_whole_name() {
        let status = "VmPeak:\t  900 kB\nVmRSS:\t   2048 kB\nRssAnon:\t  512 kB\n";
        assert_eq!(megabytes(status, "VmRSS"), Some(2.0));
        assert_eq!(megabytes(status, "RssAnon"), Some(0.5));
        assert_eq!(megabytes(status, "Rss"), None);
    }

    #[test]
    fn a_process_that_was_not_seen_before_is_left_out_of_the_difference() {
        let before = Cpu::from([("a".to_owned(), 100.0), ("gone".to_owned(), 5.0)]);
        let after = Cpu::from([("a".to_owned(), 350.0), ("new".to_owned(), 9.0)]);
        assert_eq!(spent(&before, &after), Cpu::from([("a".to_owned(), 250.0)]));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_child_that_ended_still_counts() {
        let me = std::process::id();
        let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let mut child = std::process::Command::new("sh").args(["-c", spin]).spawn().unwrap();
        let before = cluster_cpu(me).unwrap();
        child.wait().unwrap();
        let reaped = Stat::of(me).unwrap().reaped_ms;
        assert!(reaped > 0.0, "the loop takes more than a tick");
        assert!(cluster_cpu(me).unwrap() >= before.max(reaped));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_ends_while_it_is_read_is_counted() {
        let spin = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let children = std::thread::spawn(move || {
            for _ in 0..50 {
                std::process::Command::new("sh").args(["-c", spin]).status().unwrap();
            }
        });
        let (mut last, mut readings) = (0.0, 0);
        while !children.is_finished() {
            let Some(now) = cluster_cpu(std::process::id()) else { continue };
            assert!(now >= last, "{now} ms after {last} ms");
            (last, readings) = (now, readings + 1);
        }
        children.join().unwrap();
        assert!(readings > 1 && last > 0.0, "{readings} readings, the last one {last} ms");
    }
}
