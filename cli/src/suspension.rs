//! Suspending and resuming a workflow or a scan, and how that is told.

use clap::Args;
use wire::{Resume, Resumption, SuspendedPart, Suspension, SuspensionStatus};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::time;

#[derive(Debug, Args)]
pub(crate) struct SuspendFlags {
    /// Why, for those who wonder later
    #[arg(long, env = "SERVICE_REASON", value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeFlags {
    /// Why
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
        session.show(&status, text)?;
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
        session.show(&status, text)?;
        Ok(Exit::Succeeded)
    }
}

fn text(status: &SuspensionStatus) -> String {
    match (&status.suspended, &status.resumed) {
        (Some(suspension), _) => format!("suspended {}\n", since(suspension)),
        (None, Some(resumption)) => format!("resumed {}\n", at(resumption)),
        (None, None) => "not suspended\n".to_owned(),
    }
}

/// Since when, by whom and why.
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

/// When, by whom and why.
pub(crate) fn at(resumption: &Resumption) -> String {
    let Resumption { at, by, reason } = resumption;
    let why = reason.as_ref().map(|reason| format!(": {reason}"));
    format!("{} by {by}{}", time(at), why.unwrap_or_default())
}
