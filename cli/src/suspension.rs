//! Suspending and resuming a workflow or a scan, and how the result is printed.

use clap::Args;
use wire::{Resume, Resumption, SuspendedPart, Suspension, SuspensionStatus};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::time;

#[derive(Debug, Args)]
pub(crate) struct SuspendFlags {
    /// The reason, for others
    #[arg(long, env = "SERVICE_REASON", value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeFlags {
    /// The reason
    #[arg(long, env = "SERVICE_REASON", value_name = "TEXT")]
    reason: Option<String>,
}

impl SuspendFlags {
    pub(crate) async fn run(
        self,
        workflow: &str,
        scan: Option<&str>,
        session: &mut Session<'_>,
    ) -> Result<Exit, Error> {
        let request = wire::Suspend {
            reason: self.reason,
        };
        let status = session.client()?.suspend(workflow, scan, &request).await?;
        session.show(&status, after_suspending)?;
        Ok(Exit::Succeeded)
    }
}

impl ResumeFlags {
    pub(crate) async fn run(
        self,
        workflow: &str,
        scan: Option<&str>,
        session: &mut Session<'_>,
    ) -> Result<Exit, Error> {
        let request = Resume {
            reason: self.reason,
        };
        let status = session.client()?.resume(workflow, scan, &request).await?;
        session.show(&status, |status| after_resuming(status, workflow))?;
        Ok(Exit::Succeeded)
    }
}

fn after_suspending(status: &SuspensionStatus) -> String {
    match &status.suspended {
        Some(suspension) => format!("suspended {}\n", since(suspension)),
        None => "not suspended any more\n".to_owned(),
    }
}

/// `workflow` is the user's name for the workflow. A resumed scan may still be suspended together with its workflow.
fn after_resuming(status: &SuspensionStatus, workflow: &str) -> String {
    let part = match &status.scan {
        Some(scan) => format!("the scan {scan}"),
        None => format!("the workflow {workflow}"),
    };
    let own = status.resumed.as_ref().map(at);
    match &status.suspended {
        None => match own {
            Some(at) => format!("resumed {at}\n"),
            None => format!("{part} was not suspended; nothing changed\n"),
        },
        Some(suspension) if suspension.part == SuspendedPart::Workflow && status.scan.is_some() => {
            let own = own.map_or_else(
                || format!("{part} was not suspended by itself"),
                |at| format!("{part} was resumed {at}"),
            );
            let Suspension {
                since, by, reason, ..
            } = suspension;
            format!(
                "{own}; the workflow is suspended since {} by {by}: {reason}\nresume it: everscan workflow resume {workflow}\n",
                time(since)
            )
        }
        Some(suspension) => format!("suspended again {}\n", since(suspension)),
    }
}

pub(crate) fn since(suspension: &Suspension) -> String {
    let whole = match suspension.part {
        SuspendedPart::Workflow => ", with the whole workflow",
        SuspendedPart::Scan => "",
    };
    let Suspension {
        since, by, reason, ..
    } = suspension;
    format!("since {} by {by}{whole}: {reason}", time(since))
}

pub(crate) fn at(resumption: &Resumption) -> String {
    let Resumption { at, by, reason } = resumption;
    let why = reason.as_ref().map(|reason| format!(": {reason}"));
    format!("{} by {by}{}", time(at), why.unwrap_or_default())
}
