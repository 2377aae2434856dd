//! The newest jobs of a scan as bars: how long each took and how it ended.

use maud::{Markup, html};
use wire::JobState;

use super::{Bar, Clock, count, job_link, length, pixels, share};

const MOST_BARS: usize = 200;
const STEP: i64 = 6;
const BAR_WIDTH: i64 = 5;
const TOP: i64 = 12;
const HEIGHT: i64 = 120;
/// Space for the labels of the lines.
const LABEL_WIDTH: i64 = 132;
/// Labels closer than this would overlap.
const LABEL_HEIGHT: i64 = 14;
/// The least height, so that a short job can be seen and clicked.
const LOWEST: i64 = 3;

const MINI_STEP: i64 = 7;
const MINI_HEIGHT: i64 = 16;

/// Draws the newest 200 bars, oldest first, with lines at the median and the 95th percentile of the successes. Each
/// bar is a link to its job.
pub fn outcomes(bars: &[Bar], clock: Clock) -> Markup {
    let bars = newest(bars, MOST_BARS);
    let times = successes(bars);
    let (median, p95) = (percentile(&times, 50), percentile(&times, 95));
    let longest = longest(bars);
    // One very long job must not flatten all others.
    let top = p95.map_or(longest, |p95| longest.min(p95.saturating_mul(2)));
    let width = pixels(bars.len()) * STEP + LABEL_WIDTH;
    let base = TOP + HEIGHT;
    html! {
        svg.outcomes width=(width) height=(base + 4) viewBox={ "0 0 " (width) " " (base + 4) }
            role="group" aria-label=(label(bars, median, p95)) {
            path.rule d={ "M0 " (base) "H" (width - LABEL_WIDTH) } {}
            @for (bar, place) in bars.iter().zip(0..) {
                @let height = share(bar.millis().unwrap_or(0), top, HEIGHT).max(LOWEST);
                (job_link(bar, &bar.label(clock), &shape(bar.state, place * STEP, base, height)))
            }
            @for line in lines(median, p95, longest, top) {
                path class={ "rule " (line.class) } d={ "M0 " (line.y) "H" (width - LABEL_WIDTH + 4) } {}
                text class=(line.class) x=(width - LABEL_WIDTH + 8) y=(line.label_y + 4) { (line.text) }
            }
        }
    }
}

struct Line {
    class: &'static str,
    y: i64,
    label_y: i64,
    text: String,
}

/// The lines from top to bottom. Their labels do not overlap.
fn lines(median: Option<i64>, p95: Option<i64>, longest: i64, top: i64) -> Vec<Line> {
    let is_cut = longest > top;
    let wanted = [
        ("top", is_cut.then_some(top), "over"),
        ("p95", p95, "p95"),
        ("median", median, "median"),
    ];
    let mut free = TOP;
    wanted
        .into_iter()
        .filter_map(|(class, millis, name)| {
            let millis = millis?;
            let y = TOP + HEIGHT - share(millis, top, HEIGHT);
            let label_y = y.max(free);
            free = label_y + LABEL_HEIGHT;
            Some(Line {
                class,
                y,
                label_y,
                text: format!("{name} {}", length(millis)),
            })
        })
        .collect()
}

fn label(bars: &[Bar], median: Option<i64>, p95: Option<i64>) -> String {
    let mut label = tally(bars);
    for (name, millis) in [("median", median), ("95th percentile", p95)] {
        if let Some(millis) = millis {
            label.push_str(&format!(", {name} {}", length(millis)));
        }
    }
    label
}

/// For example `last 9 jobs, 2 failed`.
fn tally(bars: &[Bar]) -> String {
    let failed = bars.iter().filter(|bar| bar.state == JobState::Failed);
    let jobs = count(bars.len(), "job");
    format!("last {jobs}, {} failed", failed.count())
}

/// Small bars without links, oldest first, for a node or a table row.
pub fn mini_bars(bars: &[Bar]) -> Markup {
    let bars = newest(bars, MOST_BARS);
    let longest = longest(bars);
    let width = pixels(bars.len()) * MINI_STEP;
    html! {
        svg.bars role="img" aria-label=(tally(bars)) width=(width) height=(MINI_HEIGHT)
            viewBox={ "0 0 " (width) " " (MINI_HEIGHT) } {
            @for (bar, place) in bars.iter().zip(0..) {
                @let height = share(bar.millis().unwrap_or(0), longest, MINI_HEIGHT).max(LOWEST);
                (shape(bar.state, place * MINI_STEP, MINI_HEIGHT, height))
            }
        }
    }
}

fn newest(bars: &[Bar], most: usize) -> &[Bar] {
    &bars[bars.len().saturating_sub(most)..]
}

fn longest(bars: &[Bar]) -> i64 {
    let times = bars.iter().filter_map(Bar::millis);
    times.max().unwrap_or(0).max(1)
}

/// A bar that stands on `base`. A failure has a gap, and a job that did not complete is hollow, so colour is not the
/// only difference.
fn shape(state: JobState, x: i64, base: i64, height: i64) -> Markup {
    let class = state.as_str();
    match state {
        JobState::Succeeded | JobState::Running => html! {
            rect class=(class) x=(x) y=(base - height) width=(BAR_WIDTH) height=(height) rx="1" {}
        },
        JobState::Failed => {
            let gap = if height < 8 { 1 } else { 2 };
            let lower = (height - gap) / 2;
            let upper = height - gap - lower;
            let line = format!(
                "M{x} {base}v-{lower}h{BAR_WIDTH}v{lower}zM{x} {}v-{upper}h{BAR_WIDTH}v{upper}z",
                base - lower - gap
            );
            html! { path class=(class) d=(line) {} }
        }
        JobState::Cancelled | JobState::Skipped | JobState::Scheduled => html! {
            rect class=(class) x={ (x) ".5" } y={ (base - height) ".5" } width=(BAR_WIDTH - 1) height=(height - 1) {}
        },
    }
}

/// The smallest value that at least `percent` of the values do not exceed (nearest rank).
fn percentile(values: &[i64], percent: u8) -> Option<i64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * usize::from(percent.min(100))).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

/// The median of the successful jobs in seconds; none if it is below one second. Failures often end early, so they do
/// not count.
pub fn usual_seconds(bars: &[Bar]) -> Option<i64> {
    percentile(&successes(bars), 50)
        .map(|millis| millis / 1_000)
        .filter(|seconds| *seconds > 0)
}

/// The run times of the successful jobs.
fn successes(bars: &[Bar]) -> Vec<i64> {
    let succeeded = bars.iter().filter(|bar| bar.state == JobState::Succeeded);
    succeeded.filter_map(Bar::millis).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
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
