//! What a message says about a job: how it ended, why it ran, and the last lines of its failed step.

use std::sync::Arc;

use chrono::TimeDelta;
use model::{
    Clause, Evaluation, Job, JobId, Masker, Outcome, PlainToken, Reason, Step, StepOutcome,
    Timestamp, World,
};
use reconciler::Handle;
use state::{LogFilter, LogRecord, State};

use crate::new_lines::{NewLines, new_lines};
use crate::text::{clean, line};

/// Lines of a log in a message.
const LOG_LINES: u64 = 20;

/// Characters of a line in a message.
const LINE_CHARS: usize = 500;

/// Stands for a text in which secrets cannot be searched.
const HIDDEN: &str = "(not shown, because it cannot be searched for the job's secrets)";

/// A job, and what its records say.
pub(crate) struct JobFacts {
    pub(crate) job: Arc<Job>,
    masker: Option<Masker>,
}

impl JobFacts {
    /// None if the job was removed or cannot be read.
    pub(crate) async fn of(handle: &Handle, id: JobId) -> Option<Self> {
        let job = handle.state().job(id).await.ok()??;
        let masker = handle.masker(&job).await;
        Some(Self { job, masker })
    }

    /// The text without the job's secrets and our tokens.
    pub(crate) fn masked(&self, text: &str) -> String {
        let masked = self.masker.as_ref().map(|masker| masked(masker, text));
        masked.unwrap_or_else(|| HIDDEN.to_owned())
    }

    /// A secret of the job that has another value now, or none: what the job has written cannot be searched for it.
    pub(crate) fn changed_secret(&self, world: &World) -> Option<String> {
        let now = world.secrets(self.job.project).map(|it| &it.secrets);
        let version = |name| Some(now?.get(name)?.edit.version);
        let mut used = self.job.state.run()?.secrets.iter();
        let changed = used.find(|(name, used)| version(*name) != Some(**used))?;
        Some(changed.0.clone())
    }

    /// The lines without the job's secrets. They are cut afterwards, so that no part of a secret stays.
    pub(crate) fn masked_lines(&self, lines: &[String]) -> Vec<String> {
        let masked = self.masked(&lines.join("\n"));
        masked
            .lines()
            .map(|line| match line.char_indices().nth(LINE_CHARS) {
                Some((end, _)) => format!("{}…", &line[..end]),
                None => line.to_owned(),
            })
            .collect()
    }

    /// The step that failed, or that ran when the job ended.
    pub(crate) fn failed_step(&self) -> Option<&Step> {
        let steps = &self.job.state.run()?.steps;
        let failed = steps
            .iter()
            .find(|step| step.outcome == Some(StepOutcome::Failed));
        failed.or_else(|| steps.last())
    }

    /// The last lines of the failed step.
    pub(crate) async fn log(&self, state: &State) -> Vec<String> {
        let Some(step) = self.failed_step() else {
            return Vec::new();
        };
        let filter = LogFilter {
            step: Some(step.index),
            ..LogFilter::default()
        };
        let logs = state.logs();
        let Ok(begin) = logs.begin_of_last(self.job.id, filter, LOG_LINES).await else {
            return vec!["(the log cannot be read)".to_owned()];
        };
        let stream = logs.stream(self.job.id, begin);
        let mut stream = stream.filtered(filter).limited(LOG_LINES);
        let mut lines = Vec::new();
        while !stream.has_given_all() {
            let (next, read) = stream.next().await;
            stream = next;
            let Ok(Some(piece)) = read else {
                break;
            };
            let records = piece.split(|byte| *byte == b'\n');
            let records = records.filter_map(|line| serde_json::from_slice(line).ok());
            lines.extend(records.map(|LogRecord { record, .. }| record.text));
        }
        lines
    }

    /// Why the job ran, or the first job of which it is a retry.
    pub(crate) async fn cause(&self, state: &State) -> String {
        let mut first = self.job.clone();
        while let Some(retried) = first.retry_of.map(|retry| retry.job) {
            match state.job(retried).await {
                Ok(Some(job)) => first = job,
                Ok(None) | Err(_) => break,
            }
        }
        match first.reason {
            Reason::Dispatched | Reason::Rerun { .. } => {
                format!("{}, by {}", first.reason, first.actor)
            }
            Reason::ExpressionTrue => {
                let until = Some(first.created_at);
                let ledger = state.ledger(&first.scan_key(), until, None, 5).await;
                let mut records = ledger.unwrap_or_default().records.into_iter();
                let made = Outcome::Made { job: first.id };
                let made = records.find(|record| record.outcome == made);
                match made.and_then(|record| record.evaluation) {
                    Some(read) => format!("{}: {}", first.reason, because(&read)),
                    None => first.reason.to_string(),
                }
            }
            _ => first.reason.to_string(),
        }
    }

    /// The lines of an artifact that are new.
    pub(crate) async fn new_lines(
        &self,
        state: &State,
        artifact: &str,
        previous: Option<JobId>,
    ) -> Result<NewLines, String> {
        new_lines(state, &self.job, artifact, previous).await
    }

    /// How the job failed, how long the scan had been fine, and why the job ran. The log follows.
    pub(crate) fn failure(
        &self,
        failures: u64,
        has_succeeded: bool,
        fine: Option<TimeDelta>,
        cause: &str,
    ) -> String {
        let error = self.failed_step().and_then(|step| step.error.as_ref());
        let mut text = match error {
            Some(error) => sentence(&format!("{}: {error}", self.job.reason())),
            None => sentence(&self.job.reason().to_string()),
        };
        if let Some(retry) = self.job.retry_of {
            let (attempt, attempts) = (retry.attempt, retry.attempts);
            text.push_str(&format!("\nIt was attempt {attempt} of {attempts}."));
        }
        if failures > 1 {
            text.push_str(&format!("\n{failures} failures in a row."));
        }
        match fine.map(rounded) {
            Some(fine) => text.push_str(&format!("\nIt had been fine for {fine}.")),
            None if !has_succeeded => text.push_str("\nIt has never succeeded."),
            None => {}
        }
        format!("{text}\nWhy it ran: {cause}.")
    }
}

/// The parts of an expression that made it true, or the whole expression.
fn because(read: &Evaluation) -> String {
    match holding(&read.clause).join(", ") {
        none if none.is_empty() => line(&read.expression),
        parts => line(&parts),
    }
}

fn holding(clause: &Clause) -> Vec<&str> {
    if clause.value != Some(true.into()) {
        return Vec::new();
    }
    match clause.text.as_str() {
        "&&" | "||" => clause.parts.iter().flat_map(holding).collect(),
        _ if clause.parts.is_empty() => vec![&clause.text],
        // A negation or a choice has no part that alone made it true.
        _ => Vec::new(),
    }
}

/// A text with a capital letter and a full stop. The name of a file stays as it is.
pub(crate) fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let word = text.split(' ').next().unwrap_or_default();
    let text: String = match characters.next() {
        Some(first) if !word.contains(['/', '.']) => {
            first.to_uppercase().chain(characters).collect()
        }
        _ => text.to_owned(),
    };
    let end = if text.ends_with(['.', '!', '?', '…']) {
        ""
    } else {
        "."
    };
    text + end
}

/// A duration as people say it: days and hours, hours and minutes, or less.
pub(crate) fn rounded(duration: TimeDelta) -> String {
    let seconds = duration.num_seconds();
    let unit = match seconds {
        86_400.. => 3_600,
        3_600.. => 60,
        _ => 1,
    };
    workflow::format_duration(TimeDelta::seconds(seconds - seconds % unit))
}

pub(crate) fn time(at: Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Characters that nobody sees are removed between two searches: they may divide a secret, or belong to one.
fn masked(masker: &Masker, text: &str) -> String {
    PlainToken::hide_all(&masker.mask(&clean(&masker.mask(text))))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn clause(text: &str, value: bool, parts: Vec<Clause>) -> Clause {
        Clause {
            text: text.to_owned(),
            value: Some(value.into()),
            error: None,
            jobs: BTreeMap::new(),
            more_jobs: 0,
            parts,
        }
    }

    #[test]
    fn the_parts_that_made_an_expression_true_are_named() {
        let leaf = |text, value| clause(text, value, Vec::new());
        let or = clause("||", true, vec![leaf("b", false), leaf("c", true)]);
        let and = clause("&&", true, vec![leaf("a", true), or]);
        assert_eq!(holding(&and), ["a", "c"]);
        let not = clause("!", true, vec![leaf("a", false)]);
        assert!(holding(&not).is_empty());
    }

    #[test]
    fn characters_that_nobody_sees_hide_no_secret() {
        let masker = Masker::new(["pre\u{202e}fix-secret", "whole-secret"]).unwrap();
        let text = "pre\u{202e}fix-secret and whole\u{202e}-secret";
        assert_eq!(masked(&masker, text), "*** and ***");
    }

    #[test]
    fn durations_are_rounded_and_sentences_have_ends() {
        let long = TimeDelta::seconds(2 * 86_400 + 3 * 3_600 + 59);
        assert_eq!(rounded(long), "2d3h");
        assert_eq!(rounded(TimeDelta::seconds(7_325)), "2h2m");
        assert_eq!(rounded(TimeDelta::seconds(75)), "1m15s");
        assert_eq!(sentence("step 1 failed"), "Step 1 failed.");
        assert_eq!(sentence("a/b.yaml is invalid"), "a/b.yaml is invalid.");
    }
}
