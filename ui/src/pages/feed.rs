//! The newest events of a workflow, including triggers that made no job.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use wire::{
    JobLine, JobState, LedgerCause, LedgerOutcome, LedgerRecord, Resumption, ScanStatus,
    SuspendedPart, Suspension, Workflow,
};

use crate::links;
use crate::list::empty;
use crate::shell::Visit;
use crate::words::{ago, between, cause, icon, job_link, state_icon, trigger_word, with_code};

/// The most entries to show.
const MOST: usize = 20;

/// The events of one scan.
#[derive(Debug, Clone, Copy)]
pub struct Past<'a> {
    pub scan: &'a str,
    /// Its ledger, newest first.
    pub ledger: &'a [LedgerRecord],
    /// Its finished jobs, newest first.
    pub jobs: &'a [JobLine],
}

#[derive(Clone, Copy)]
enum What<'a> {
    Decided(&'a LedgerRecord),
    /// A finished job, and the older jobs of its scan.
    Ended(&'a JobLine, &'a [JobLine]),
    Suspended(&'a Suspension),
    Resumed(&'a Resumption),
}

struct Entry<'a> {
    at: DateTime<Utc>,
    /// Empty for the whole workflow.
    scan: &'a str,
    what: What<'a>,
    /// Its position among the entries of the same kind and scan, newest first.
    place: usize,
}

impl Entry<'_> {
    /// The chronological order. At the same time, causes come before effects: the end of a job before the job that it
    /// starts, a decision before the end of a job that it caused.
    fn order(&self) -> impl Ord {
        let rank = match self.what {
            What::Ended(job, _) if is_ended_by_decision(job) => 2,
            What::Decided(_) => 1,
            What::Ended(..) | What::Suspended(_) | What::Resumed(_) => 0,
        };
        (self.at, rank, self.scan, Reverse(self.place))
    }
}

fn is_ended_by_decision(job: &JobLine) -> bool {
    job.state == JobState::Skipped || job.reason.as_deref() == Some("replaced")
}

/// `name` is `source/name`.
pub(super) fn feed(
    visit: &Visit,
    name: &str,
    workflow: &Workflow,
    scans: &[ScanStatus],
    pasts: &[Past<'_>],
) -> Markup {
    let entries = entries(pasts, suspensions(workflow, scans));
    html! {
        @if entries.is_empty() {
            (empty(&html! { p { "Nothing yet: no job has finished, and no schedule or expression was evaluated." } }))
        }
        ul.feed.events {
            @for entry in &entries {
                li {
                    @match entry.what {
                        What::Decided(record) => { (decided(name, entry.scan, record)) }
                        What::Ended(job, older) => { (ended(entry.scan, job, older)) }
                        What::Suspended(it) => { (switched(entry.scan, "skipped", "suspended", &it.by, Some(&it.reason))) }
                        What::Resumed(it) => { (switched(entry.scan, "succeeded", "resumed", &it.by, it.reason.as_deref())) }
                    }
                    span.muted.small { (ago(entry.at, visit.now)) }
                }
            }
        }
    }
}

/// The latest suspension or resumption of the workflow and of each scan.
fn suspensions<'a>(workflow: &'a Workflow, scans: &'a [ScanStatus]) -> Vec<Entry<'a>> {
    let scans = scans.iter().map(|status| {
        let own = status.suspended.as_ref();
        let own = own.filter(|it| it.part == SuspendedPart::Scan);
        (status.scan.name.as_str(), own, status.resumed.as_ref())
    });
    let whole = ("", workflow.suspended.as_ref(), workflow.resumed.as_ref());
    let mut entries = Vec::new();
    for (scan, suspended, resumed) in scans.chain([whole]) {
        let suspended = suspended.map(|it| (it.since, What::Suspended(it)));
        let resumed = resumed.map(|it| (it.at, What::Resumed(it)));
        entries.extend(
            suspended
                .into_iter()
                .chain(resumed)
                .map(|(at, what)| Entry {
                    at,
                    scan,
                    what,
                    place: 0,
                }),
        );
    }
    entries
}

/// The newest entries of all, in order.
fn entries<'a>(pasts: &[Past<'a>], mut entries: Vec<Entry<'a>>) -> Vec<Entry<'a>> {
    for Past { scan, ledger, jobs } in pasts {
        let ledger = ledger.iter().enumerate().take(MOST);
        entries.extend(ledger.map(|(place, record)| Entry {
            at: record.at,
            scan,
            what: What::Decided(record),
            place,
        }));
        let ended = jobs.iter().enumerate().take(MOST);
        entries.extend(ended.filter_map(|(place, job)| {
            Some(Entry {
                at: job.finished_at?,
                scan,
                what: What::Ended(job, jobs.get(place + 1..).unwrap_or_default()),
                place,
            })
        }));
    }
    entries.sort_by(|one, other| other.order().cmp(&one.order()));
    entries.truncate(MOST);
    entries
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
                b { (scan) } " did not start: " (with_code(message))
                @if is_repeated { ", " (cause(record)) }
                " · " (why)
            }
        },
        LedgerOutcome::Skipped { job, message, .. } => html! {
            (state_icon("skipped"))
            span { b { (scan) } " was skipped: " (with_code(message)) " · " (job_link(*job)) " · " (why) }
        },
    }
}

/// The icon of a cause.
const fn drawing(cause: &LedgerCause) -> &'static str {
    match cause {
        LedgerCause::Slots { .. } | LedgerCause::Resumed { .. } | LedgerCause::Clock { .. } => {
            "cron"
        }
        LedgerCause::Interactions { .. } => "callback",
        LedgerCause::Success { .. }
        | LedgerCause::Activation { .. }
        | LedgerCause::Failure { .. }
        | LedgerCause::Claim { .. }
        | LedgerCause::Repeats { .. } => "expr",
    }
}

fn switched(scan: &str, drawn: &'static str, word: &str, by: &str, reason: Option<&str>) -> Markup {
    html! {
        span.state.(drawn) { (icon(drawn)) }
        span {
            @if scan.is_empty() { "The workflow" } @else { b { (scan) } }
            " was " (word) " by " (by)
            @if let Some(reason) = reason { ": " (reason) }
        }
    }
}

/// `older` has the previous jobs of the scan, newest first. This job may retry one of them.
fn ended(scan: &str, job: &JobLine, older: &[JobLine]) -> Markup {
    let retried = older.iter().find(|it| it.retried_by == Some(job.id));
    html! {
        (state_icon(job.state.as_str()))
        span {
            b { (scan) } " " (word(job.state))
            @if let (Some(started), Some(finished)) = (job.started_at, job.finished_at) {
                " after " (between(started, finished))
            }
            ", "
            @match retried {
                Some(earlier) => { "retry of " (job_link(earlier.id)) }
                None => { "started " (trigger_phrase(job)) }
            }
            " · " (job_link(job.id))
        }
    }
}

fn trigger_phrase(job: &JobLine) -> String {
    match job.trigger {
        wire::Trigger::Dispatch => trigger_word(job.trigger).to_owned(),
        wire::Trigger::Cron | wire::Trigger::Expr | wire::Trigger::Callback => {
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

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use wire::Trigger;

    use super::*;

    const AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn ended(number: u128, state: JobState, reason: &str) -> JobLine {
        JobLine {
            id: Uuid::from_u128(number),
            state,
            trigger: Trigger::Cron,
            revision: Uuid::nil(),
            reason: Some(reason.to_owned()),
            runner: None,
            retried_by: None,
            causes: Vec::new(),
            created_at: AT,
            started_at: None,
            finished_at: Some(AT),
            artifacts: Default::default(),
            bytes: 0,
        }
    }

    fn made(number: u128, cause: LedgerCause) -> LedgerRecord {
        LedgerRecord {
            at: AT,
            cause,
            evaluation: None,
            outcome: LedgerOutcome::Made {
                job: Uuid::from_u128(number),
            },
        }
    }

    /// The jobs of the entries, newest first.
    fn jobs(pasts: &[Past<'_>]) -> Vec<(&'static str, u128)> {
        let entries = entries(pasts, Vec::new());
        let jobs = entries.iter().map(|entry| match entry.what {
            What::Ended(job, _) => ("ended", job.id.as_u128()),
            What::Decided(record) => match record.outcome {
                LedgerOutcome::Made { job } => ("made", job.as_u128()),
                _ => unreachable!("every record made a job"),
            },
            What::Suspended(_) | What::Resumed(_) => unreachable!("none is given"),
        });
        jobs.collect()
    }

    #[test]
    fn causes_come_before_effects_at_the_same_time() {
        let hosts = [ended(1, JobState::Succeeded, "steps_succeeded")];
        let success = LedgerCause::Success {
            scan: "hosts".to_owned(),
            job: Uuid::from_u128(1),
        };
        let probe = [made(3, success.clone()), made(2, success)];
        let old = [ended(0, JobState::Cancelled, "replaced")];
        let of = |scan, ledger, jobs| Past { scan, ledger, jobs };
        let pasts = [of("probe", &probe[..], &old[..]), of("hosts", &[], &hosts)];
        let expected = [("ended", 0), ("made", 3), ("made", 2), ("ended", 1)];
        assert_eq!(jobs(&pasts), expected, "newest first");
        let [one, other] = pasts;
        assert_eq!(jobs(&[other, one]), expected, "in any order of the scans");
    }

    #[test]
    fn a_retry_names_the_job_that_it_retries() {
        let earlier = JobLine {
            retried_by: Some(Uuid::from_u128(2)),
            ..ended(1, JobState::Failed, "step_failed")
        };
        let retry = JobLine {
            trigger: Trigger::Dispatch,
            ..ended(2, JobState::Succeeded, "steps_succeeded")
        };
        let text = super::ended("probe", &retry, &[earlier]).into_string();
        let link = job_link(Uuid::from_u128(1)).into_string();
        assert!(text.contains(&format!("retry of {link}")), "{text}");
        assert!(!text.contains("by hand"), "{text}");
        let text = super::ended("probe", &retry, &[]).into_string();
        assert!(text.contains("started by hand"), "{text}");
    }
}
