//! `everscan scan why`: why a scan ran or did not run.

use chrono::{DateTime, Utc};
use clap::Args;
use wire::{Evaluation, LedgerCause, LedgerOutcome, LedgerRecord, Listening, Watching, Why};

use crate::clause::{result, scan_line, tree};
use crate::clock::moment;
use crate::commands::notify;
use crate::error::Error;
use crate::exit::Exit;
use crate::follow::cut_at;
use crate::session::Session;
use crate::suspension;
use crate::table::{Fields, ids, short_commit, time};
use crate::untrusted::clean;

/// The state of a scan that may start jobs, unless it is suspended.
const ACTIVE: &str = "active";

const REMOVED: &str = "removed";

#[derive(Debug, Args)]
pub(crate) struct WhyScan {
    /// Workflow: its name, SOURCE/NAME, or id
    workflow: String,
    /// Name of the scan
    scan: String,
    /// Show what was known at this time, as in 2026-11-21T10:00:00Z
    #[arg(long, env = "SERVICE_AT", value_name = "TIME", value_parser = moment)]
    at: Option<DateTime<Utc>>,
    /// How many evaluations to show
    #[arg(long, env = "SERVICE_LIMIT", value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
}

impl WhyScan {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let at = self.at.map(|at| at.to_rfc3339());
        let why = client
            .why(&self.workflow, &self.scan, at.as_deref(), self.limit)
            .await?;
        session.show(&why, text)?;
        session.warn_missing(&why.damaged);
        Ok(Exit::Succeeded)
    }
}

fn text(why: &Why) -> String {
    let cron = why.cron.as_ref().map(|cron| {
        // A slot of a suspended scan starts no job.
        let next = cron.next.filter(|_| why.suspended.is_none());
        let by = by(cron.next_schedule.as_ref());
        let next = next.map_or_else(String::new, |next| format!("; next {}{by}", time(&next)));
        format!(
            "{} ({}, {}){next}",
            cron.schedule, cron.description, cron.timezone
        )
    });
    let ahead = why.cron.as_ref().and_then(|cron| cron.ahead.as_ref());
    let ahead = ahead.map(|until| {
        let until = time(until);
        format!("the schedule was evaluated up to {until}, ahead of the daemon's clock; it waits: is the clock right?")
    });
    let unfinished = why.unfinished.iter().map(|job| {
        format!(
            "{} {} ({}{}{}{})",
            job.id,
            job.state.as_str(),
            job.trigger.as_str(),
            job.attempt
                .zip(job.attempts)
                .map_or_else(String::new, |(attempt, attempts)| {
                    format!("; attempt {attempt} of {attempts}")
                }),
            job.log_cut
                .as_ref()
                .map_or_else(String::new, |cut| format!("; its log is {}", cut_at(cut))),
            job.waiting
                .as_ref()
                .map_or_else(String::new, |why| format!("; waits: {}", why.message))
        )
    });
    let unfinished: Vec<String> = unfinished.collect();
    let now = why.expr.as_ref().and_then(|expr| expr.now.as_ref());
    let suspended = why.suspended.as_ref().map(suspension::since);
    let mut fields = Fields::new().add("scan", format!("{} {}", why.workflow, why.scan));
    fields = match suspended {
        Some(since) if why.state == ACTIVE => fields.add("state", format!("suspended {since}")),
        suspended => fields
            .add("state", state(why))
            .add_some("suspended", suspended),
    };
    fields = fields
        .add_some(
            "renamed from",
            why.renamed_from
                .as_ref()
                .map(|former| format!("{former}, which has its earlier jobs")),
        )
        .add_some("renamed to", why.renamed_to.as_ref())
        .add_some("resumed", why.resumed.as_ref().map(suspension::at))
        .add_some("cron", cron)
        .add_some("clock", ahead)
        .add_some("expr", why.expr.as_ref().map(|expr| &expr.expression))
        .add_some("is now", now.map(|now| result(&now.clause)))
        .add_some("evaluated", why.expr.as_ref().map(next_evaluation))
        .add_some("callback", why.callback.as_ref().map(listening))
        .add_some(
            "not over",
            (!unfinished.is_empty()).then(|| unfinished.join(", ")),
        )
        .add_some(
            "newest",
            why.newest.as_ref().and_then(|job| {
                let (at, causes) = (time(&job.created_at), ids(&job.causes)?);
                Some(format!("{}, made {at} because of {causes}", job.id))
            }),
        )
        .add_some(
            "circle",
            why.circle.as_ref().map(|circle| {
                let (laps, scans) = (circle.laps, circle.scans.join(", "));
                format!("{laps} laps of under a minute each, of the scans {scans}")
            }),
        )
        .add_some(
            "log",
            why.cut_job
                .as_ref()
                .map(|job| format!("that of job {} is {}", job.id, cut_at(&job.log_cut))),
        );
    let mut text = notify::sent(fields, &why.messages).text();
    if let Some(now) = now {
        text.push_str(&evaluation(now));
    }
    text.push('\n');
    for record in &why.records {
        text.push_str(&ledger_record(record));
    }
    if why.records.is_empty() {
        text.push_str(match (&why.cron, &why.expr) {
            _ if why.state == REMOVED => "No evaluation of its schedule or expression is on record.\n",
            (None, None) if why.callback.is_some() => "No interaction has come yet.\n",
            (None, None) => "It has neither a schedule nor an expression: it runs when somebody dispatches it.\n",
            (Some(_), _) | (_, Some(_)) => "Never evaluated.\n",
        });
    }
    text
}

/// The callback server that starts the scan, and the interactions that wait.
fn listening(it: &Listening) -> String {
    let mut text = format!("{}, at most every {}", it.server, it.min_interval);
    if let Some(number) = it.considered {
        text.push_str(&format!("; considered up to interaction {number}"));
    }
    if let Some(problem) = &it.problem {
        text.push_str(&format!("; none can come: {problem}"));
    }
    if let Some(waiting) = &it.waiting {
        let range = range(waiting.first, waiting.last, waiting.count);
        text.push_str(&format!(
            "; {range} until {}{}",
            waiting.until,
            own(waiting.own)
        ));
    }
    text
}

/// Interactions with their numbers.
pub(in crate::commands) fn range(first: u64, last: u64, count: u64) -> String {
    match count {
        1 if first == last => format!("interaction {first}"),
        1 => format!("1 interaction between {first} and {last}"),
        _ => format!("{count} interactions from {first} to {last}"),
    }
}

fn own(count: u64) -> String {
    match count {
        0 => String::new(),
        _ => format!(" ({count} of names that its own jobs made)"),
    }
}

/// When the expression is evaluated again.
fn next_evaluation(watching: &Watching) -> String {
    let successes = match watching.after_successes.as_slice() {
        [] => "any other scan".to_owned(),
        scans => scans.join(" or "),
    };
    let failures = match watching.after_failures.as_slice() {
        [] => String::new(),
        scans => format!(", or the next failure of {}", scans.join(" or ")),
    };
    format!("at the next success of {successes}{failures}")
}

fn state(why: &Why) -> String {
    match &why.removed_by {
        Some(revision) => format!(
            "{}: revision {} ({}) of the workflow is the first without it",
            why.state,
            revision.number,
            short_commit(&revision.commit)
        ),
        None if why.state == REMOVED => format!("{}: the workflow is without it", why.state),
        None => why.state.clone(),
    }
}

/// The schedule of a slot, if the scan has several.
fn by(schedule: Option<&String>) -> String {
    schedule.map_or_else(String::new, |schedule| format!(" by `{schedule}`"))
}

pub(super) fn ledger_record(record: &LedgerRecord) -> String {
    let cause = match &record.cause {
        LedgerCause::Slots {
            last,
            count: 1,
            schedule,
            ..
        } => format!("due at {}{}", time(last), by(schedule.as_ref())),
        LedgerCause::Slots {
            first, last, count, ..
        } => {
            format!("{count} times due from {} to {}", time(first), time(last))
        }
        LedgerCause::Resumed { slot, schedule } => {
            let by = by(schedule.as_ref());
            format!("resumed, and due at {}{by} before", time(slot))
        }
        LedgerCause::Success { scan, job } => format!("{scan} succeeded (job {job})"),
        LedgerCause::Activation { revision } => {
            format!("revision {revision} added or changed the scan")
        }
        LedgerCause::Failure { scan, job } => format!("{scan} failed (job {job})"),
        LedgerCause::Interactions {
            name,
            first,
            last,
            count,
            own: of_own,
            ..
        } => {
            let range = range(*first, *last, *count);
            format!("callback server {name} had {range}{}", own(*of_own))
        }
        LedgerCause::Claim { job } => format!("a runner came for job {job}"),
        LedgerCause::Clock { cursor } => format!("the clock was behind {}", time(cursor)),
        LedgerCause::Repeats { first, last, count } => {
            format!("{count} times more from {} to {}", time(first), time(last))
        }
    };
    let outcome = match &record.outcome {
        LedgerOutcome::Made { job } => format!("made job {job}"),
        LedgerOutcome::NotMade { message, .. } => format!("no job: {message}"),
        LedgerOutcome::Skipped { job, message, .. } => format!("skipped job {job}: {message}"),
    };
    let mut text = clean(&format!("{}  {cause}: {outcome}", time(&record.at)));
    text.push('\n');
    text.push_str(
        &record
            .evaluation
            .as_ref()
            .map_or_else(String::new, evaluation),
    );
    text
}

fn evaluation(evaluation: &Evaluation) -> String {
    let mut text = tree(&evaluation.clause, 1);
    for (name, read) in &evaluation.scans {
        text.push_str("    ");
        text.push_str(&scan_line(name, read));
        text.push('\n');
    }
    text
}
