//! `everscan scan show`: one scan, its expectations, and those that its past suggests.

use clap::Args;
use wire::ScanStatus;

use super::list::starts_by;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Fields, time, time_or_dash};

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Workflow: its name, SOURCE/NAME, or id
    workflow: String,
    /// Name of the scan
    scan: String,
}

impl Show {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        session.show(&client.scan(&self.workflow, &self.scan).await?, text)?;
        Ok(Exit::Succeeded)
    }
}

fn text(status: &ScanStatus) -> String {
    let last = status.last_job.as_ref().map(|job| {
        let at = job.finished_at.as_ref().unwrap_or(&job.created_at);
        format!("{} {} {}", job.id, job.state.as_str(), time(at))
    });
    let suspended = status.suspended.as_ref();
    let suspended =
        suspended.map(|it| format!("since {} by {}: {}", time(&it.since), it.by, it.reason));
    let finished = &status.finished;
    let finished = format!(
        "{} succeeded, {} failed, {} cancelled, {} skipped",
        finished.succeeded, finished.failed, finished.cancelled, finished.skipped
    );
    let expect = status.expect.as_ref();
    let suggested = status.proposed.as_ref().filter(|it| Some(*it) != expect);
    Fields::new()
        .add("scan", &status.scan.name)
        .add(
            "workflow",
            format!("{}/{}", status.workflow.source, status.workflow.name),
        )
        .add("starts by", starts_by(status))
        .add("next slot", time_or_dash(status.next_slot.as_ref()))
        .add_some("suspended", suspended)
        .add("unfinished", status.unfinished.to_string())
        .add("finished", finished)
        .add_some("last job", last)
        .add_some("expect", expect.map(ToString::to_string))
        .add_some("suggested", suggested.map(ToString::to_string))
        .text()
}
