//! `everscan job list`.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use client::JobFilter;
use wire::{Job, JobState, Page};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, time};

const STATES: [JobState; 6] = [
    JobState::Scheduled,
    JobState::Running,
    JobState::Succeeded,
    JobState::Failed,
    JobState::Cancelled,
    JobState::Skipped,
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
    #[arg(long, env = "SERVICE_STATE", value_parser = state())]
    state: Option<JobState>,
    /// How many jobs
    #[arg(long, env = "SERVICE_LIMIT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Go on where an earlier list ended
    #[arg(long, env = "SERVICE_CURSOR")]
    cursor: Option<String>,
}

impl List {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let filter = JobFilter {
            workflow: self.workflow,
            scan: self.scan,
            state: self.state,
        };
        let page = session
            .client()?
            .jobs(&filter, Some(self.limit), self.cursor.as_deref())
            .await?;
        session.show(&page, table)?;
        session.say_missing(&page.damaged);
        if let Some(cursor) = &page.next_cursor {
            session
                .terminal
                .say(&format!("there are more: --cursor {cursor}"));
        }
        Ok(Exit::Succeeded)
    }
}

fn state() -> impl TypedValueParser<Value = JobState> {
    PossibleValuesParser::new(STATES.map(JobState::as_str)).try_map(|name| {
        let found = STATES.into_iter().find(|state| state.as_str() == name);
        found.ok_or("no such state")
    })
}

fn table(page: &Page<Job>) -> String {
    let mut table = Table::new(&["ID", "WORKFLOW", "SCAN", "STATE", "TRIGGER", "CREATED"]);
    for job in &page.items {
        table.row([
            job.id.to_string(),
            format!("{}/{}", job.workflow.source, job.workflow.name),
            job.scan.clone(),
            job.state.as_str().to_owned(),
            job.trigger.as_str().to_owned(),
            time(&job.created_at),
        ]);
    }
    table.text()
}
