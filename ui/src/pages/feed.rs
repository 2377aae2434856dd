//! What happened in a workflow, and what did not and why.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use wire::{JobLine, JobState, LedgerCause, LedgerOutcome, LedgerRecord};

use crate::links;
use crate::list::empty;
use crate::shell::Visit;
use crate::words::{ago, between, cause, icon, job_link, state_icon, trigger_word};

/// The newest entries that are shown.
const MOST: usize = 20;

/// The past of one scan.
#[derive(Debug, Clone, Copy)]
pub struct Past<'a> {
    pub scan: &'a str,
    /// What was decided, newest first.
    pub ledger: &'a [LedgerRecord],
    /// Its finished jobs, newest first.
    pub jobs: &'a [JobLine],
}

enum Entry<'a> {
    Decided(&'a LedgerRecord),
    Ended(&'a JobLine),
}

/// `workflow` is `source/name`.
pub(super) fn feed(visit: &Visit, workflow: &str, pasts: &[Past<'_>]) -> Markup {
    let mut entries: Vec<(DateTime<Utc>, &str, Entry<'_>)> = Vec::new();
    for past in pasts {
        let ledger = past.ledger.iter().take(MOST);
        entries.extend(ledger.map(|record| (record.at, past.scan, Entry::Decided(record))));
        let ended = past.jobs.iter().take(MOST);
        let ended = ended.filter_map(|job| Some((job.finished_at?, past.scan, Entry::Ended(job))));
        entries.extend(ended);
    }
    entries.sort_by(|(one, ..), (other, ..)| other.cmp(one));
    entries.truncate(MOST);
    html! {
        @if entries.is_empty() {
            (empty(&html! { p { "Nothing yet: no job of it is over, and no schedule or expression was evaluated." } }))
        }
        ul.feed.events {
            @for (at, scan, entry) in &entries {
                li {
                    @match entry {
                        Entry::Decided(record) => { (decided(workflow, scan, record)) }
                        Entry::Ended(job) => { (ended(scan, job)) }
                    }
                    span.muted.small { (ago(*at, visit.now)) }
                }
            }
        }
    }
}

fn decided(workflow: &str, scan: &str, record: &LedgerRecord) -> Markup {
    let why = html! { a href={ (links::scan(workflow, scan)) "#ledger" } { "why" } };
    let is_repeated = matches!(record.cause, LedgerCause::Repeats { .. });
    match &record.outcome {
        LedgerOutcome::Made { job } => html! {
            span.state.running { (icon(drawing(&record.cause))) }
            span { b { (scan) } " was started: " (cause(record)) " · " (job_link(*job)) " · " (why) }
        },
        LedgerOutcome::NotMade { message, .. } => html! {
            (state_icon("skipped"))
            span {
                b { (scan) } " did not start: " (message)
                @if is_repeated { ", " (cause(record)) }
                " · " (why)
            }
        },
        LedgerOutcome::Skipped { job, message, .. } => html! {
            (state_icon("skipped"))
            span { b { (scan) } " was skipped: " (message) " · " (job_link(*job)) " · " (why) }
        },
    }
}

/// The drawing of what made a job.
const fn drawing(cause: &LedgerCause) -> &'static str {
    match cause {
        LedgerCause::Slots { .. } | LedgerCause::Resumed { .. } | LedgerCause::Clock { .. } => {
            "cron"
        }
        LedgerCause::Success { .. } | LedgerCause::Claim { .. } | LedgerCause::Repeats { .. } => {
            "expr"
        }
    }
}

fn ended(scan: &str, job: &JobLine) -> Markup {
    html! {
        (state_icon(job.state.as_str()))
        span {
            b { (scan) } " " (word(job.state))
            @if let (Some(started), Some(finished)) = (job.started_at, job.finished_at) {
                " after " (between(started, finished))
            }
            ", started " (trigger_phrase(job)) " · " (job_link(job.id))
        }
    }
}

fn trigger_phrase(job: &JobLine) -> String {
    match job.trigger {
        wire::Trigger::Dispatch => trigger_word(job.trigger).to_owned(),
        wire::Trigger::Cron | wire::Trigger::Expr => {
            format!("by its {}", trigger_word(job.trigger))
        }
    }
}

const fn word(state: JobState) -> &'static str {
    match state {
        JobState::Cancelled => "was cancelled",
        JobState::Skipped => "was skipped",
        JobState::Scheduled => "waits",
        JobState::Running => "runs",
        JobState::Succeeded => "succeeded",
        JobState::Failed => "failed",
    }
}
