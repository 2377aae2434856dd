//! How long a scan usually takes.

use wire::JobState;

use super::Bar;

/// The smallest value that at least `percent` of the values do not exceed (nearest rank). Always one of the values.
pub fn percentile(values: &[i64], percent: u8) -> Option<i64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * usize::from(percent.min(100))).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

/// The median of the jobs that succeeded, in whole seconds; none if it is shorter than one. Failures often end early and
/// would make it shorter.
pub fn usual_seconds(bars: &[Bar]) -> Option<i64> {
    percentile(&successes(bars), 50)
        .map(|millis| millis / 1_000)
        .filter(|seconds| *seconds > 0)
}

/// The milliseconds of the jobs that succeeded.
pub(super) fn successes(bars: &[Bar]) -> Vec<i64> {
    let succeeded = bars.iter().filter(|bar| bar.state == JobState::Succeeded);
    succeeded.filter_map(Bar::millis).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values() {
        let values: Vec<i64> = (1..=100).rev().collect();
        assert_eq!(percentile(&values, 50), Some(50));
        assert_eq!(percentile(&values, 95), Some(95));
        assert_eq!(percentile(&values, 100), Some(100));
        assert_eq!(percentile(&values, 0), Some(1));
        assert_eq!(percentile(&values, 255), Some(100));
        assert_eq!(percentile(&[3, 1, 2], 50), Some(2));
        assert_eq!(percentile(&[4, 3, 1, 2], 50), Some(2));
        assert_eq!(percentile(&[4, 3, 1, 2], 95), Some(4));
        assert_eq!(percentile(&[7], 95), Some(7));
        assert_eq!(percentile(&[], 50), None);
    }
}
