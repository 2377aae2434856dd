use chrono::{DateTime, Utc};
use clap::Args;
use client::AuditFilter;
use wire::{AuditRecord, Page};

use crate::clock::moment_or_age;
use crate::commands::PageFlags;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, time};

#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Only changes made with this token, or by this job or runner: its name or id
    #[arg(long, env = "SERVICE_ACTOR", value_name = "TOKEN")]
    actor: Option<String>,
    /// Only changes of this kind, as in token_created; the error for an unknown kind lists all kinds
    #[arg(long, env = "SERVICE_KIND")]
    kind: Option<String>,
    /// Only changes at this time or later, or as long ago as this, as in 1d
    #[arg(long, env = "SERVICE_SINCE", value_name = "TIME", value_parser = moment_or_age)]
    since: Option<DateTime<Utc>>,
    /// Only changes at this time or earlier, or longer ago than this
    #[arg(long, env = "SERVICE_UNTIL", value_name = "TIME", value_parser = moment_or_age)]
    until: Option<DateTime<Utc>>,
    #[command(flatten)]
    page: PageFlags,
}

impl Audit {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let filter = AuditFilter {
            actor: self.actor,
            kind: self.kind,
            since: self.since,
            until: self.until,
        };
        let page = session
            .client()?
            .audit(&filter, Some(self.page.limit), self.page.cursor.as_deref())
            .await?;
        session.show_page(&page, table)?;
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<AuditRecord>) -> String {
    let mut table = Table::new(&["AT", "ACTOR", "FROM", "DONE", "REQUEST"]);
    for record in &page.items {
        table.row([
            time(&record.at),
            record.by().unwrap_or_else(|| "-".to_owned()),
            record
                .address
                .map_or_else(|| "several".to_owned(), |address| address.to_string()),
            record.done(),
            format!("{} {}", record.method, record.path),
        ]);
    }
    table.text()
}
