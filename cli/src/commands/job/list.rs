use chrono::{DateTime, Utc};
use clap::Args;
use client::JobFilter;
use wire::{Job, JobState, Page, Trigger};

use crate::clock::moment_or_age;
use crate::commands::{PageFlags, one_of};
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, short_job, time};

const STATES: [JobState; 6] = [
    JobState::Scheduled,
    JobState::Running,
    JobState::Succeeded,
    JobState::Failed,
    JobState::Cancelled,
    JobState::Skipped,
];

const TRIGGERS: [Trigger; 4] = [
    Trigger::Dispatch,
    Trigger::Cron,
    Trigger::Expr,
    Trigger::Callback,
];

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only jobs of this workflow: its name, SOURCE/NAME, or id
    #[arg(long, env = "SERVICE_WORKFLOW")]
    workflow: Option<String>,
    /// Only jobs of scans of this name
    #[arg(long, env = "SERVICE_SCAN")]
    scan: Option<String>,
    /// Only jobs in this state
    #[arg(long, env = "SERVICE_STATE", value_parser = one_of(&STATES, JobState::as_str))]
    state: Option<JobState>,
    /// Only jobs with this trigger
    #[arg(long, env = "SERVICE_TRIGGER", value_parser = one_of(&TRIGGERS, Trigger::as_str))]
    trigger: Option<Trigger>,
    /// Only jobs that the runner of this name executed
    #[arg(long, env = "SERVICE_RUNNER")]
    runner: Option<String>,
    /// Only jobs with this code of the reason for their state, as in step_failed
    #[arg(long, env = "SERVICE_REASON")]
    reason: Option<String>,
    /// Only jobs made at this time or later, or as long ago as this, as in 1d
    #[arg(long, env = "SERVICE_SINCE", value_name = "TIME", value_parser = moment_or_age)]
    since: Option<DateTime<Utc>>,
    /// Only jobs made before this time, or longer ago than this
    #[arg(long, env = "SERVICE_UNTIL", value_name = "TIME", value_parser = moment_or_age)]
    until: Option<DateTime<Utc>>,
    #[command(flatten)]
    page: PageFlags,
}

impl List {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let filter = JobFilter {
            workflow: self.workflow,
            scan: self.scan,
            state: self.state,
            trigger: self.trigger,
            runner: self.runner,
            reason: self.reason,
            since: self.since,
            until: self.until,
        };
        let page = session
            .client()?
            .jobs(&filter, Some(self.page.limit), self.page.cursor.as_deref())
            .await?;
        session.show_page(&page, table)?;
        Ok(Exit::Succeeded)
    }
}

/// The trigger of a job, and the attempt number of a retry.
fn made_by(job: &Job) -> String {
    let trigger = job.trigger.as_str();
    match job.attempt.zip(job.attempts) {
        Some((attempt, attempts)) => format!("{trigger} {attempt}/{attempts}"),
        None => trigger.to_owned(),
    }
}

fn table(page: &Page<Job>) -> String {
    let mut table = Table::new(&["ID", "WORKFLOW", "SCAN", "STATE", "TRIGGER", "CREATED"]);
    for job in &page.items {
        table.row([
            short_job(&job.id),
            format!("{}/{}", job.workflow.source, job.workflow.name),
            job.scan.clone(),
            job.state.as_str().to_owned(),
            made_by(job),
            time(&job.created_at),
        ]);
    }
    table.text()
}
