//! Latencies of many requests, to a tenth of a percent.

use std::time::Duration;

use hdrhistogram::Histogram;

#[derive(Debug)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    pub(crate) fn new() -> Result<Self, String> {
        Histogram::new(3).map(Self).map_err(|fault| fault.to_string())
    }

    pub(crate) fn record(&mut self, latency: Duration) {
        // It grows as it needs to, so nothing is out of its range.
        let _ = self.0.record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn add(&mut self, other: &Self) -> Result<(), String> {
        self.0.add(&other.0).map_err(|fault| fault.to_string())
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The milliseconds that `percent` of the requests did not exceed; `None` without requests.
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a request")]
    pub(crate) fn percentile(&self, percent: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_percentile(percent) as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_request_in_fifty_shows_in_the_99th_percentile_only() {
        let mut latencies = Latencies::new().unwrap();
        assert_eq!(latencies.percentile(50.0), None);
        let mut slow = Latencies::new().unwrap();
        slow.record(Duration::from_millis(80));
        (0..49).for_each(|_| latencies.record(Duration::from_millis(1)));
        latencies.add(&slow).unwrap();
        assert_eq!(latencies.count(), 50);
        assert!((latencies.percentile(50.0).unwrap() - 1.0).abs() < 0.01);
        assert!((latencies.percentile(99.0).unwrap() - 80.0).abs() < 0.1);
    }
}
