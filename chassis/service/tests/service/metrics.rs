//! What measuring costs a process.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::time::Duration;

use chassis_service::telemetry;
use tokio::time::MissedTickBehavior;

const MIB: usize = 1 << 20;

#[tokio::test]
async fn measured_durations_do_not_take_more_memory_when_nobody_reads_the_metrics() {
    const EVERY: Duration = Duration::from_millis(1);
    telemetry::metrics().unwrap();
    let durations = metrics::histogram!("measured_for_a_test_seconds");
    let keeping_up = tokio::spawn(telemetry::keep_up(EVERY));
    let mut ticks = tokio::time::interval(EVERY);
    // Ticks that were missed would be due at once, and nobody else would have a turn.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let before = resident();
    for _ in 0..10 {
        // 16 MiB, while the only thread is busy; then both timers are due.
        for _ in 0..MIB {
            durations.record(0.003);
        }
        ticks.tick().await;
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 80 * MIB, "{} MiB more, of 160 measured", grown / MIB);
    assert!(telemetry::metrics().unwrap().render().contains("measured_for_a_test_seconds_count 10485760"));
    keeping_up.abort();
}

/// The resident memory of this process.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
