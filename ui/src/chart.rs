//! Charts of jobs as SVG. Each state has a shape and a colour, and each chart has a text that describes it.
//!
//! A chart with links has the role `group`: screen readers do not read the parts of an `img`.

mod gauges;
mod lanes;
mod outcomes;
mod window;

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};
use maud::{Markup, html};
use uuid::Uuid;
use wire::{Job, JobLine, JobState};

pub use gauges::{progress, slots};
pub use lanes::{Cause, Lane, causes, lanes};
pub use outcomes::{mini_bars, outcomes, usual_seconds};
pub use window::Window;

use crate::links;
use crate::words::duration;

/// The time of the page, and the offset in which it shows times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    pub now: DateTime<Utc>,
    pub offset: FixedOffset,
}

/// A job in a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    pub job: Uuid,
    pub state: JobState,
    /// When a runner claimed the job; else when the job was made.
    pub start: DateTime<Utc>,
    /// When the job ended; the current time if it is unfinished.
    pub end: DateTime<Utc>,
    /// True if a runner claimed the job.
    pub has_run: bool,
}

impl Bar {
    pub fn of_line(job: &JobLine, now: DateTime<Utc>) -> Self {
        Self {
            job: job.id,
            state: job.state,
            start: job.started_at.unwrap_or(job.created_at),
            end: job.finished_at.unwrap_or(now),
            has_run: job.started_at.is_some(),
        }
    }

    pub fn of_job(job: &Job, now: DateTime<Utc>) -> Self {
        Self {
            job: job.id,
            state: job.state,
            start: job.started_at.unwrap_or(job.created_at),
            end: job.finished_at.unwrap_or(now),
            has_run: job.started_at.is_some(),
        }
    }

    /// The run time in milliseconds; none if no runner claimed the job. Clocks may differ, so an end before the start
    /// counts as 0.
    pub fn millis(&self) -> Option<i64> {
        let millis = self
            .end
            .signed_duration_since(self.start)
            .num_milliseconds();
        self.has_run.then_some(millis.max(0))
    }

    /// The text of the bar for screen readers.
    fn label(&self, clock: Clock) -> String {
        let state = self.state.as_str();
        let at = window::day_and_time(self.start, clock.offset);
        match self.millis() {
            Some(millis) => format!("{state}, {}, {at}", length(millis)),
            None => format!("{state}, made {at}"),
        }
    }
}

/// Wraps a shape in a link to the page of its job.
fn job_link(bar: &Bar, label: &str, shape: &Markup) -> Markup {
    html! {
        a href=(links::job(bar.job)) aria-label=(label) {
            title { (label) }
            (shape)
        }
    }
}

fn length(millis: i64) -> String {
    duration(TimeDelta::milliseconds(millis))
}

fn count(number: usize, noun: &str) -> String {
    crate::words::count(number as u64, noun, &format!("{noun}s"))
}

/// A length in pixels. A huge length becomes longer than any drawing.
fn pixels(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Scales `part` of `whole` to pixels of `length`.
fn share(part: i64, whole: i64, length: i64) -> i64 {
    let scaled = i128::from(part.max(0)) * i128::from(length) / i128::from(whole.max(1));
    i64::try_from(scaled).unwrap_or(length).min(length)
}
