//! The wait after a failure.

use chrono::TimeDelta;

/// Doubles with every failure up to `most`, minus a random part of up to half, so that what failed at the same time is
/// not retried at the same time.
pub fn backoff(failures: u32, first: TimeDelta, most: TimeDelta) -> TimeDelta {
    let doublings = failures.saturating_sub(1).min(20);
    let first = first.num_milliseconds().max(1);
    let full = first.saturating_mul(1 << doublings).min(most.num_milliseconds().max(1));
    TimeDelta::milliseconds(rand::random_range(full / 2..=full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_grows_to_its_bound_and_is_never_less_than_half() {
        let (first, most) = (TimeDelta::seconds(1), TimeDelta::seconds(30));
        for (failures, full) in
            [(0, 1000), (1, 1000), (2, 2000), (5, 16_000), (6, 30_000), (u32::MAX, 30_000)]
        {
            for _ in 0..100 {
                let wait = backoff(failures, first, most).num_milliseconds();
                assert!((full / 2..=full).contains(&wait), "{failures} failures: {wait} ms");
            }
        }
    }
}
