//! `everscan scan jobs`: the jobs of one scan, newest first.

use clap::Args;
use client::JobFilter;
use wire::{Job, Page};

use crate::clock::format_duration;
use crate::commands::PageFlags;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, short_job, time};

#[derive(Debug, Args)]
pub(crate) struct Jobs {
    /// Workflow: its name, SOURCE/NAME, or id
    workflow: String,
    /// Name of the scan
    scan: String,
    #[command(flatten)]
    page: PageFlags,
}

impl Jobs {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let filter = JobFilter {
            workflow: Some(self.workflow),
            scan: Some(self.scan),
            ..JobFilter::default()
        };
        let client = session.client()?;
        let page = client.jobs(&filter, Some(self.page.limit), self.page.cursor.as_deref());
        let page = page.await?;
        session.show_page(&page, table)?;
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<Job>) -> String {
    let headings = [
        "ID", "STATE", "TRIGGER", "REASON", "RUNNER", "REVISION", "CREATED", "TOOK",
    ];
    let mut table = Table::new(&headings);
    for job in &page.items {
        table.row([
            short_job(&job.id),
            job.state.as_str().to_owned(),
            trigger(job),
            job.reason.code.clone(),
            job.runner
                .as_ref()
                .map_or_else(|| "-".to_owned(), |runner| runner.name.clone()),
            job.revision.number.to_string(),
            time(&job.created_at),
            took(job),
        ]);
    }
    table.text()
}

/// The trigger of the job. A retry keeps the trigger of the first job of its chain.
fn trigger(job: &Job) -> String {
    let trigger = job.trigger.as_str();
    match &job.retry_of {
        None => trigger.to_owned(),
        Some(of) => format!("{trigger}, retry of {}", short_job(of)),
    }
}

/// The run time; a dash for a job that still runs or never ran.
fn took(job: &Job) -> String {
    let (Some(started), Some(finished)) = (job.started_at, job.finished_at) else {
        return "-".to_owned();
    };
    let took = (finished - started).to_std().unwrap_or_default();
    format_duration(took)
}
