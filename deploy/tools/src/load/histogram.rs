//! Latencies in a fixed number of logarithmic buckets: recording costs no allocation and no sorting, and a percentile is
//! exact to less than one percent.

use std::time::Duration;

/// Each power of two is cut into this many buckets, so a bucket is at most 1/128 of its value wide.
const PARTS: u64 = 128;
const PARTS_BITS: u32 = PARTS.trailing_zeros();
/// Up to 2^40 ns, which is 18 minutes; anything slower counts as that.
const POWERS: u32 = 40;
const BUCKETS: usize = ((POWERS - PARTS_BITS + 1) as usize) << PARTS_BITS;

/// Counts of latencies.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Box<[u32]>,
    count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS].into_boxed_slice(), count: 0 }
    }
}

impl Histogram {
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanoseconds)] += 1;
        self.count += 1;
    }

    pub fn merge(&mut self, other: &Self) {
        for (own, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *own += more;
        }
        self.count += other.count;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The latency in milliseconds that `percent` of the requests did not exceed; `None` without requests.
    pub fn percentile(&self, percent: u64) -> Option<f64> {
        let wanted = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += u64::from(*count);
            seen >= wanted
        })?;
        Some(middle(found))
    }
}

/// Values below 2 × `PARTS` have a bucket each; above, the leading bits choose it.
fn bucket(nanoseconds: u64) -> usize {
    let shift = (u64::BITS - nanoseconds.leading_zeros()).saturating_sub(PARTS_BITS + 1);
    let index = (u64::from(shift) << PARTS_BITS) + (nanoseconds >> shift);
    usize::try_from(index).map_or(BUCKETS - 1, |index| index.min(BUCKETS - 1))
}

/// The middle of a bucket, in milliseconds.
#[expect(clippy::cast_precision_loss, reason = "a bucket's bounds have 8 significant bits")]
fn middle(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    let shift = (bucket >> PARTS_BITS).saturating_sub(1);
    let lowest = (bucket - (shift << PARTS_BITS)) << shift;
    let width = 1_u64 << shift;
    (lowest as f64 + (width - 1) as f64 / 2.0) / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        for value in values {
            histogram.record(Duration::from_nanos(value));
        }
        histogram
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "below 2^40")]
    fn every_value_is_found_again_to_within_one_percent() {
        let mut value = 1_u64;
        while value < 1 << POWERS {
            let found = of([value]).percentile(50).unwrap() * 1e6;
            let exact = value as f64;
            assert!((found - exact).abs() <= exact / 100.0, "{value} became {found}");
            value += value / 37 + 1;
        }
    }

    #[test]
    fn percentiles_of_a_known_row_are_its_elements() {
        let histogram = of((1..=1000).map(|number| number * 1_000_000));
        for (percent, exact) in [(50, 500.0), (99, 990.0), (100, 1000.0), (0, 1.0)] {
            let found = histogram.percentile(percent).unwrap();
            assert!((found - exact).abs() <= exact / 100.0, "p{percent} was {found}");
        }
    }

    #[test]
    fn one_slow_request_in_fifty_shows_in_the_99th_percentile_only() {
        let mut histogram = of(std::iter::repeat_n(1_000_000, 49));
        histogram.merge(&of([80_000_000]));
        assert_eq!(histogram.count(), 50);
        assert!(histogram.percentile(50).unwrap() < 1.01);
        assert!(histogram.percentile(99).unwrap() > 79.0);
    }

    #[test]
    fn nothing_recorded_has_no_percentile_and_a_giant_does_not_overflow() {
        assert_eq!(Histogram::default().percentile(50), None);
        assert!(of([u64::MAX]).percentile(50).unwrap() > 1e6);
    }

    #[test]
    fn buckets_grow_with_their_values() {
        let mut last = 0;
        for value in 0..100_000 {
            let now = bucket(value);
            assert!(now == last || now == last + 1, "{value}: {last} then {now}");
            last = now;
        }
    }
}
