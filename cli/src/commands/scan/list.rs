//! `everscan scan list`: every scan, its triggers, and the result of its newest job.

use clap::Args;
use wire::{How, Page, ScanStatus};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, time_or_dash};

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only scans of this workflow: its name, SOURCE/NAME, or id
    #[arg(long, env = "SERVICE_WORKFLOW")]
    workflow: Option<String>,
}

impl List {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let page = Page::all(client.scans(self.workflow.as_deref()).await?);
        session.show(&page, table)?;
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<ScanStatus>) -> String {
    let headings = [
        "WORKFLOW",
        "SCAN",
        "STARTS BY",
        "NEXT",
        "LAST JOB",
        "CREATED",
        "NOT OVER",
    ];
    let mut table = Table::new(&headings);
    for status in &page.items {
        let last = status.last_job.as_ref();
        table.row([
            format!("{}/{}", status.workflow.source, status.workflow.name),
            status.scan.name.clone(),
            starts_by(status),
            match status.suspended {
                Some(_) => "suspended".to_owned(),
                None => time_or_dash(status.next_slot.as_ref()),
            },
            last.map_or_else(|| "-".to_owned(), |job| job.state.as_str().to_owned()),
            time_or_dash(last.map(|job| &job.created_at)),
            status.unfinished.to_string(),
        ]);
    }
    table.text()
}

/// The schedule, the scans whose successes start the scan, the callback server, and `dispatch` if the scan declares it.
pub(super) fn starts_by(status: &ScanStatus) -> String {
    let scan = &status.scan;
    let starting: Vec<&str> = scan
        .reads
        .iter()
        .filter(|reading| reading.how == How::Starts)
        .map(|reading| reading.scan.as_str())
        .collect();
    let expr = scan.expr.as_ref().map(|_| match starting.as_slice() {
        [] => "expr".to_owned(),
        scans => format!("expr after {}", scans.join(", ")),
    });
    let cron = scan.cron.as_ref().map(|cron| format!("cron {cron}"));
    let callback = scan.callback.as_ref().map(|it| format!("callback {it}"));
    let dispatch = scan.inputs.as_ref().map(|_| "dispatch".to_owned());
    let all: Vec<String> = [cron, expr, callback, dispatch]
        .into_iter()
        .flatten()
        .collect();
    all.join("; ")
}
