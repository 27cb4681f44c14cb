//! What processes use: CPU time and resident memory, read from `/proc`. Where there is none (macOS), nothing is known and
//! the columns stay empty.

use std::collections::BTreeMap;
use std::fs;

/// `/proc` counts CPU time in these, 100 a second on every Linux we run on (`getconf CLK_TCK`).
const TICK_MS: u64 = 10;

/// The name under which all processes of the database cluster count together.
pub(crate) const POSTGRES: &str = "postgres";
/// This program.
pub(crate) const LOAD: &str = "load";

/// Milliseconds of CPU time since the start, by process name.
pub(crate) type Cpu = BTreeMap<String, u64>;
/// Resident kilobytes, by process name.
pub(crate) type Memory = BTreeMap<String, u64>;

/// A program that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub name: String,
    pub pid: u32,
}

/// The processes under observation.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub processes: Vec<Process>,
    /// The first process of the database cluster.
    pub postmaster: Option<u32>,
}

impl Watched {
    /// CPU time used so far. Two of these and [`spent`] give what a round cost.
    pub(crate) fn cpu(&self) -> Cpu {
        let mut cpu = Cpu::new();
        for process in &self.processes {
            if let Some(stat) = stat_of(&process.pid.to_string()) {
                cpu.insert(process.name.clone(), stat.own_ms);
            }
        }
        if let Some(total) = self.postmaster.and_then(cluster_cpu) {
            cpu.insert(POSTGRES.to_owned(), total);
        }
        if let Some(stat) = stat_of("self") {
            cpu.insert(LOAD.to_owned(), stat.own_ms);
        }
        cpu
    }

    /// Resident memory of the programs, without the database's.
    pub(crate) fn memory(&self) -> Memory {
        let resident = |process: &Process| memory_field(&status_of(process.pid)?, "VmRSS");
        let known = |process: &Process| Some((process.name.clone(), resident(process)?));
        self.processes.iter().filter_map(known).collect()
    }

    /// Memory of the database cluster: what each process has for itself, and the shared buffers once.
    pub(crate) fn postgres_memory(&self) -> Option<u64> {
        let postmaster = self.postmaster?;
        let mut pids = children_of(postmaster);
        pids.push(postmaster);
        let statuses: Vec<String> = pids.into_iter().filter_map(status_of).collect();
        let field = |name| statuses.iter().filter_map(move |status| memory_field(status, name));
        let private: u64 = field("RssAnon").sum();
        Some(private + field("RssShmem").max().unwrap_or(0))
    }
}

/// What was used between two observations.
pub(crate) fn spent(before: &Cpu, after: &Cpu) -> Cpu {
    let since = |(name, end): (&String, &u64)| {
        before.get(name).map(|start| (name.clone(), end.saturating_sub(*start)))
    };
    after.iter().filter_map(since).collect()
}

/// A backend that ends is added to the postmaster's own account of its children, so nothing gets lost.
fn cluster_cpu(postmaster: u32) -> Option<u64> {
    let own = stat_of(&postmaster.to_string())?;
    let living: u64 = children_of(postmaster)
        .into_iter()
        .filter_map(|pid| stat_of(&pid.to_string()))
        .map(|stat| stat.own_ms)
        .sum();
    Some(own.own_ms + own.reaped_ms + living)
}

fn children_of(parent: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| stat_of(&pid.to_string()).is_some_and(|stat| stat.parent == parent)).collect()
}

fn stat_of(pid: &str) -> Option<Stat> {
    Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn status_of(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/status")).ok()
}

/// The parts of `/proc/PID/stat` that matter here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    own_ms: u64,
    /// Of children that have ended.
    reaped_ms: u64,
}

impl Stat {
    /// The second field is the program's name in parentheses, and may itself contain spaces and parentheses.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            own_ms: (ticks(11)? + ticks(12)?) * TICK_MS,
            reaped_ms: (ticks(13)? + ticks(14)?) * TICK_MS,
        })
    }
}

/// A line such as `VmRSS:     12345 kB` of `/proc/PID/status`.
fn memory_field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "4711 (svc) odd (name) S 42 4711 4711 0 -1 4194560 1500 900 0 0 120 30 7 5 20 0 9 0 100 1 2";

    #[test]
    fn a_stat_line_is_read_past_a_name_with_parentheses() {
        assert_eq!(Stat::parse(STAT), Some(Stat { parent: 42, own_ms: 1500, reaped_ms: 120 }));
        assert_eq!(
            Stat::parse("4711 (svc) S 42 4711 4711 0 -1"),
            None,
            "cut short, it is unknown and not zero"
        );
    }

    #[test]
    fn memory_is_read_by_its_whole_name() {
        let status = "VmPeak:\t  900 kB\nVmRSS:\t   12345 kB\nRssAnon:\t  777 kB\n";
        assert_eq!(memory_field(status, "VmRSS"), Some(12345));
        assert_eq!(memory_field(status, "RssAnon"), Some(777));
        assert_eq!(memory_field(status, "Rss"), None);
    }

    #[test]
    fn a_process_that_was_not_seen_before_is_left_out_of_the_difference() {
        let before = Cpu::from([("a".to_owned(), 100), ("gone".to_owned(), 5)]);
        let after = Cpu::from([("a".to_owned(), 350), ("new".to_owned(), 9)]);
        assert_eq!(spent(&before, &after), Cpu::from([("a".to_owned(), 250)]));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_child_that_ended_still_counts() {
        let me = std::process::id();
        let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let mut child = std::process::Command::new("sh").args(["-c", spin]).spawn().unwrap();
        let before = cluster_cpu(me).unwrap();
        child.wait().unwrap();
        let reaped = stat_of("self").unwrap().reaped_ms;
        assert!(reaped > 0, "the loop takes more than a tick");
        assert!(cluster_cpu(me).unwrap() >= before.max(reaped));
    }
}
