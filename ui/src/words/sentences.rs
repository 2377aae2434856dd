//! Sentences about jobs.

use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};
use uuid::Uuid;
use wire::{
    Circle, Clause, Delivery, Explanation, Job, JobState, LedgerCause, LedgerOutcome, LedgerRecord,
    Trigger,
};

use crate::links;

use super::{at, between, bytes, count, explained, job_link, running_for, with_code};

/// Why a job exists and how it ended, in one or two sentences. `made_by` is the ledger record of its creation,
/// `retry` the job that retries it, and `usual` the usual run time of its scan.
pub fn job_sentence(
    job: &Job,
    made_by: Option<&LedgerRecord>,
    retry: Option<&Job>,
    usual: Option<TimeDelta>,
    now: DateTime<Utc>,
) -> Markup {
    html! {
        (cause_sentence(job, made_by)) " "
        (state_sentence(job, retry, now))
        @if let (JobState::Running, Some(usual)) = (job.state, usual) {
            " It usually takes " (super::usual(usual)) "."
        }
    }
}

/// Where a message about a job went, and what came of it.
pub fn sent(message: &Delivery) -> Markup {
    let result = &message.result;
    html! { "to " (message.channel) ", " (result.result.as_str()) ": " (result.reply) ", " (at(message.at)) }
}

fn cause_sentence(job: &Job, made_by: Option<&LedgerRecord>) -> Markup {
    let verb = if job.started_at.is_some() {
        "Started"
    } else {
        "Made"
    };
    if let Some(earlier) = job.retry_of {
        return html! { (verb) " because " (job_link(earlier)) " failed." };
    }
    match (made_by.map(|record| &record.cause), job.trigger) {
        (Some(LedgerCause::Success { scan, job: other }), _) => html! {
            (verb) " because " b { (scan) } " succeeded (" (job_link(*other)) ")"
            @if is_only_true_leaf(made_by, scan, "has_diff") { " and its artifact " b { "differs" } " from the one before." }
            @else if is_only_true_leaf(made_by, scan, "has_news") { " with " b { "news" } ": it differs from what was processed." }
            @else { " and the expression was true." }
        },
        (Some(LedgerCause::Activation { revision }), _) => html! {
            (verb) " because revision " (revision) " added or changed the scan and the expression was true."
        },
        (Some(LedgerCause::Failure { scan, job: other }), _) => html! {
            (verb) " because " b { (scan) } " failed (" (job_link(*other)) ") and the expression was true."
        },
        (
            Some(LedgerCause::Slots {
                last,
                count: slots,
                schedule,
                ..
            }),
            _,
        ) => html! {
            (verb) " by its schedule" (name_of(schedule.as_deref())) ", for the slot of " (at(*last))
            @if *slots > 1 { " and " (count(slots - 1, "earlier slot", "earlier slots")) }
            "."
        },
        (Some(LedgerCause::Resumed { slot, schedule }), _) => html! {
            (verb) " when its scan was resumed, for the slot of " (at(*slot)) (name_of(schedule.as_deref())) "."
        },
        (_, Trigger::Dispatch) => html! {
            (verb) " by hand"
            @if let Some(who) = &job.dispatched_by { ", by " b { (who) } }
            @if let Some(earlier) = job.rerun_of { ": " (job_link(earlier)) " was run again" }
            "."
        },
        (Some(LedgerCause::Interactions { .. }), _) | (_, Trigger::Callback) => html! {
            (verb) " because of " (heard_by(job)) "."
        },
        (_, Trigger::Cron) => html! { (verb) " by its schedule." },
        (_, Trigger::Expr) if !job.causes.is_empty() => html! {
            (verb) " because of " (causes(&job.causes)) ": the expression was true."
        },
        (_, Trigger::Expr) => html! { (verb) " because its expression became true." },
    }
}

fn heard_by(job: &Job) -> Markup {
    html! {
        @match &job.callback {
            Some(it) => {
                (interactions(&it.server, &it.name, it.first, it.last, it.count))
                @if let Some(planted) = it.job { ", of a name that " (job_link(planted)) " has planted" }
            }
            None => "interactions of a callback server",
        }
    }
}

/// Interactions of a callback server, with links to it and to the first of them.
fn interactions(server: &str, name: &str, first: u64, last: u64, number: u64) -> Markup {
    html! {
        (count(number, "interaction", "interactions")) " of callback server "
        a href=(links::callback(server)) { (name) } " ("
        a href=(links::interaction(server, first)) { (first) }
        @if last > first { " to " a href=(links::interaction(server, last)) { (last) } }
        ")"
    }
}

/// Links to the jobs whose ends made a job.
pub fn causes(causes: &[Uuid]) -> Markup {
    html! {
        @for (at, cause) in causes.iter().enumerate() {
            @if at > 0 { @if at + 1 == causes.len() { " and " } @else { ", " } }
            (job_link(*cause))
        }
    }
}

/// The laps of a circle, and what to do.
pub fn circle_sentence(circle: &Circle) -> Markup {
    html! {
        (count(circle.laps, "lap", "laps")) " of under a minute. If this is not intended, suspend one of these scans, or let one check for a new result, for example with "
        code { "scans.X.has_news()" }
    }
}

/// True if a call of this method of the scan is the only true leaf of the expression.
fn is_only_true_leaf(made_by: Option<&LedgerRecord>, scan: &str, method: &str) -> bool {
    let Some(evaluation) = made_by.and_then(|record| record.evaluation.as_ref()) else {
        return false;
    };
    let mut leaves = true_leaves(&evaluation.clause);
    let call = format!("scans.{scan}.{method}(");
    leaves
        .next()
        .is_some_and(|leaf| leaf.text.starts_with(&call))
        && leaves.next().is_none()
}

/// The leaves that were true.
fn true_leaves(clause: &Clause) -> Box<dyn Iterator<Item = &Clause> + '_> {
    if clause.parts.is_empty() {
        let is_true = clause.value == Some(serde_json::Value::Bool(true));
        return Box::new(is_true.then_some(clause).into_iter());
    }
    Box::new(clause.parts.iter().flat_map(true_leaves))
}

/// The position of a retry in its chain, after a comma.
pub fn attempt(attempt: Option<u32>, attempts: Option<u32>) -> Markup {
    html! {
        @if let Some((attempt, attempts)) = attempt.zip(attempts) { ", attempt " (attempt) " of " (attempts) }
    }
}

/// What a job retries, and when.
pub fn retry_sentence(job: &Job) -> Markup {
    html! {
        @if let Some(earlier) = job.retry_of { " retries " (job_link(earlier)) }
        (attempt(job.attempt, job.attempts))
        @if let Some(due) = due_at(job) { " at " (at(due)) }
    }
}

/// The end of a sentence that begins with a retry: when it runs, or how it was stopped.
fn retry_ending(retry: Option<&Job>) -> Markup {
    let stopped = retry.map(|retry| retry.state);
    let stopped = stopped.filter(|it| matches!(it, JobState::Cancelled | JobState::Skipped));
    match (stopped, retry.and_then(due_at)) {
        (Some(state), _) => html! { " was going to retry it, but was " (state.as_str()) "." },
        (None, Some(due)) => html! { " retries it, at " (at(due)) "." },
        (None, None) => html! { " retries it." },
    }
}

/// Since when a job waits for a runner. The pause before a retry does not count.
pub fn waits_since(job: &Job) -> DateTime<Utc> {
    let due = job.not_before.unwrap_or(job.created_at);
    due.max(job.created_at)
}

/// The time of a retry that is not due yet.
fn due_at(retry: &Job) -> Option<DateTime<Utc>> {
    let waits = retry.waiting.as_ref().is_some_and(waits_for_its_time);
    retry.not_before.filter(|_| waits)
}

/// True if a retry waits for its time, not for a runner.
pub fn waits_for_its_time(waiting: &Explanation) -> bool {
    waiting.code == "retry_due"
}

/// What a scheduled job waits for. A sentence about a retry that is not due ends with `attempt`.
pub fn what_it_waits_for(
    waiting: &Explanation,
    not_before: Option<DateTime<Utc>>,
    attempt: &Markup,
) -> Markup {
    match not_before.filter(|_| waits_for_its_time(waiting)) {
        Some(due) => html! { "Retry at " b { (at(due)) } (attempt) "." },
        None => html! { "It waits: " b { (explained(waiting)) } "." },
    }
}

fn state_sentence(job: &Job, retry: Option<&Job>, now: DateTime<Utc>) -> Markup {
    match job.state {
        JobState::Scheduled => match &job.waiting {
            Some(waiting) => {
                let which = attempt(job.attempt, job.attempts);
                what_it_waits_for(waiting, job.not_before, &which)
            }
            None => html! { "It waits." },
        },
        JobState::Running => html! {
            "It runs"
            @if let Some(started) = job.started_at { " for " b { (running_for(started, now)) } }
            @if let Some(storing) = &job.storing {
                ", and is " (storing.phase.as_str()) " " b { (storing.name) }
                ", " (bytes(storing.bytes)) " of " (bytes(storing.of))
            }
            "."
        },
        JobState::Succeeded => html! { "It " b { "succeeded" } (after(job)) "." },
        JobState::Failed => html! {
            "It " b { "failed" } (after(job)) ": " (with_code(&job.end_cause())) "."
            @if let Some(next) = job.retried_by { " " (job_link(next)) (retry_ending(retry)) }
        },
        JobState::Cancelled => {
            html! { "It was " b { "cancelled" } (after(job)) ": " (with_code(&job.end_cause())) "." }
        }
        JobState::Skipped => {
            html! { "It was " b { "skipped" } ": " (with_code(&job.end_cause())) "." }
        }
    }
}

fn after(job: &Job) -> Markup {
    html! {
        @if let (Some(from), Some(to)) = (job.started_at, job.finished_at) {
            " after " (between(from, to))
        }
    }
}

/// The schedule of a slot, if the scan has several.
fn name_of(schedule: Option<&str>) -> Markup {
    html! { @if let Some(schedule) = schedule { " " code { (schedule) } } }
}

/// Why a trigger was evaluated.
pub fn cause(record: &LedgerRecord) -> Markup {
    match &record.cause {
        LedgerCause::Slots {
            last,
            count: 1,
            schedule,
            ..
        } => html! { "the slot of " (at(*last)) (name_of(schedule.as_deref())) },
        LedgerCause::Slots {
            first,
            last,
            count: slots,
            ..
        } => html! {
            (count(*slots, "slot", "slots")) " from " (at(*first)) " to " (at(*last))
        },
        LedgerCause::Resumed { slot, schedule } => {
            html! { "the resumption, after the slot of " (at(*slot)) (name_of(schedule.as_deref())) }
        }
        LedgerCause::Success { scan, job } => html! { b { (scan) } " succeeded " (job_link(*job)) },
        LedgerCause::Activation { revision } => {
            html! { "revision " (revision) " added or changed the scan" }
        }
        LedgerCause::Failure { scan, job } => html! { b { (scan) } " failed " (job_link(*job)) },
        LedgerCause::Interactions {
            server,
            name,
            first,
            last,
            count: all,
            own,
        } => html! {
            (interactions(server, name, *first, *last, *all))
            @if *own > 0 { ", " (own) " of names of its own jobs" }
        },
        LedgerCause::Claim { job } => html! { "a runner claimed " (job_link(*job)) },
        LedgerCause::Clock { cursor } => html! {
            "the clock was behind " (at(*cursor)) ", and the schedule had already run up to that time"
        },
        LedgerCause::Repeats { last, count: 1, .. } => html! { "the same again, " (at(*last)) },
        LedgerCause::Repeats {
            first,
            last,
            count: times,
        } => html! {
            "the same " (count(*times, "time", "times")) ", " (at(*first)) " to " (at(*last))
        },
    }
}

/// The outcome of an evaluation.
pub fn outcome_of(record: &LedgerRecord) -> Markup {
    match &record.outcome {
        LedgerOutcome::Made { job } => html! { "made " (job_link(*job)) },
        LedgerOutcome::NotMade { message, .. } => html! { "no job: " (with_code(message)) },
        LedgerOutcome::Skipped { job, message, .. } => {
            html! { "skipped " (job_link(*job)) ": " (with_code(message)) }
        }
    }
}

/// The first seven characters of a commit.
pub fn short_commit(commit: &str) -> Markup {
    let short: String = commit.chars().take(7).collect();
    html! { code title=(commit) { (short) } }
}
