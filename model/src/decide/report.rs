//! Records a worker's reports on its steps and its log.

use std::sync::Arc;

use workflow::Scan;

use super::removal::check_over;
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::job::{Job, JobState, LogCut, Run, Step};
use crate::life_cycle::JobEvent;
use crate::limits::{MESSAGE_CHARS, MOST_STEPS, STEP_ERRORS_BYTES};
use crate::moment::Moment;
use crate::world::World;
use crate::{JobId, TokenHash};

/// Record the state of all steps.
#[derive(Debug, Clone)]
pub struct ReportSteps {
    pub job: JobId,
    pub token: TokenHash,
    /// Every step that started or was skipped, in order.
    pub steps: Vec<Step>,
}

impl Command for ReportSteps {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    /// A report that is older than the last report changes nothing.
    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let (job, run) = running(world, self.job, self.token)?;
        let steps = check_steps(world, job, self.steps)?;
        if run.steps == steps || is_behind(&steps, &run.steps) {
            return Ok(Decision::unchanged(()));
        }
        let job = job.after(JobEvent::StepsReported(steps))?;
        Ok(Decision::of([Change::Job(job)]))
    }
}

/// Record that a job's log has reached its limit.
#[derive(Debug, Clone)]
pub struct CutLog {
    pub job: JobId,
    pub token: TokenHash,
    pub cut: LogCut,
}

impl Command for CutLog {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let (job, run) = running(world, self.job, self.token)?;
        if run.log_cut.is_some() {
            return Ok(Decision::unchanged(()));
        }
        let job = job.after(JobEvent::LogCut(self.cut))?;
        Ok(Decision::of([Change::Job(job)]))
    }
}

/// Like [`CutLog`], for a job that was not ended by its worker. The world does not hold the job, so the command carries
/// its record.
#[derive(Debug, Clone)]
pub struct CutEndedLog {
    /// The job's current record.
    pub job: Arc<Job>,
    pub cut: LogCut,
}

impl Command for CutEndedLog {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        check_over(world, &self.job)?;
        let mut job = Job::clone(&self.job);
        match job.state.run_mut() {
            Some(run) if run.log_cut.is_none() => run.log_cut = Some(self.cut),
            Some(_) | None => return Ok(Decision::unchanged(())),
        }
        Ok(Decision::of([Change::Job(Arc::new(job))]))
    }
}

/// True if a report is older than the last report. Steps only move forward.
fn is_behind(report: &[Step], known: &[Step]) -> bool {
    report.len() < known.len()
        || report
            .iter()
            .zip(known)
            .any(|(report, known)| report.outcome.is_none() && known.outcome.is_some())
}

pub(super) fn running(
    world: &World,
    id: JobId,
    token: TokenHash,
) -> Result<(&Arc<Job>, &Run), Refusal> {
    let job = world.job(id).ok_or(Refusal::JobOver { job: id })?;
    match &job.state {
        JobState::Running { run } if run.token == token => Ok((job, run)),
        JobState::Running { .. } | JobState::Scheduled => Err(Refusal::NotYourJob { job: id }),
        JobState::Succeeded { .. }
        | JobState::Failed { .. }
        | JobState::Cancelled { .. }
        | JobState::Skipped { .. } => Err(Refusal::JobOver { job: id }),
    }
}

/// Checks the steps: in order, each once, and all declared. Texts are cut to their limits. The names come from the
/// definition, or from the last report if the definition cannot be read.
pub(super) fn check_steps(
    world: &World,
    job: &Job,
    mut steps: Vec<Step>,
) -> Result<Vec<Step>, Refusal> {
    let scan = declared(world, job);
    let most = scan.map_or(MOST_STEPS, |scan| scan.steps.len());
    let in_order = steps
        .iter()
        .enumerate()
        .all(|(at, step)| step.index as usize == at);
    if !in_order || steps.len() > most {
        return Err(Refusal::BadReport {
            job: job.id,
            problem: format!("steps must be reported from 0 in order, and at most {most}"),
        });
    }
    let known = job.state.run().map_or(&[][..], |run| &run.steps);
    let names: Vec<_> = match scan {
        Some(scan) => scan.steps.iter().map(|step| &step.name).collect(),
        None => known.iter().map(|step| &step.name).collect(),
    };
    for (at, step) in steps.iter_mut().enumerate() {
        step.name = names.get(at).copied().cloned().flatten();
    }
    let mut room = STEP_ERRORS_BYTES;
    for error in steps.iter_mut().filter_map(|step| step.error.as_mut()) {
        let chars = error.char_indices().take(MESSAGE_CHARS);
        let ends = chars.map(|(at, char)| at + char.len_utf8());
        let end = ends.take_while(|end| *end <= room).last().unwrap_or(0);
        error.truncate(end);
        room -= end;
    }
    Ok(steps)
}

/// The definition of the job's scan. None if the revision has become unreadable since the claim. The worker still has
/// the definition, so its report is then accepted unchecked.
pub(super) fn declared<'a>(world: &'a World, job: &Job) -> Option<&'a Scan> {
    let revision = world.revision(job.revision.id)?;
    revision.definition.scan(job.scan.as_str())
}
