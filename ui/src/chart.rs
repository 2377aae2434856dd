//! Charts of jobs as SVG. A state is a shape and a colour, and each chart says in words what it shows.
//!
//! A chart with links is a `group`: the parts of an `img` are not visible to those who hear a page.

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

/// When a page is made, and the offset in which its times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    pub now: DateTime<Utc>,
    pub offset: FixedOffset,
}

/// A job as a chart shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    pub job: Uuid,
    pub state: JobState,
    /// When a runner claimed it; when it was made, if none did.
    pub start: DateTime<Utc>,
    /// When it ended; now, if it is not over.
    pub end: DateTime<Utc>,
    /// Whether a runner claimed it.
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

    /// How many milliseconds it ran. Clocks may differ, so an end before the start counts as no time.
    pub fn millis(&self) -> Option<i64> {
        let millis = self
            .end
            .signed_duration_since(self.start)
            .num_milliseconds();
        self.has_run.then_some(millis.max(0))
    }

    /// The job in words, for those who do not see its bar.
    fn label(&self, clock: Clock) -> String {
        let state = self.state.as_str();
        let at = window::day_and_time(self.start, clock.offset);
        match self.millis() {
            Some(millis) => format!("{state}, {}, {at}", length(millis)),
            None => format!("{state}, made {at}"),
        }
    }
}

/// A link to the page of a job around the shape that stands for it.
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

/// A length in pixels; longer than any drawing if it does not fit.
fn pixels(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// `part` of `whole` as pixels of a length.
fn share(part: i64, whole: i64, length: i64) -> i64 {
    let scaled = i128::from(part.max(0)) * i128::from(length) / i128::from(whole.max(1));
    i64::try_from(scaled).unwrap_or(length).min(length)
}
