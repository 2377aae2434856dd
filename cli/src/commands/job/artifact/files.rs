//! `everscan job artifact files` and `diff`: the files of an artifact, and the difference to another job's artifact.

use clap::Args;
use wire::{ArtifactDiff, ArtifactEntry, FileChange, Page};

use super::{ArtifactOption, lines};
use crate::error::Error;
use crate::exit::Exit;
use crate::limits::ENTRIES;
use crate::selected_job::{JobName, SelectedJob, job_name};
use crate::session::Session;
use crate::table::{Table, bytes};

#[derive(Debug, Args)]
pub(crate) struct Files {
    #[command(flatten)]
    job: SelectedJob,
    #[command(flatten)]
    artifact: ArtifactOption,
}

impl Files {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let (client, job) = session.client_and_job(&self.job).await?;
        let (mut items, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page =
                client.artifact_entries(job, &self.artifact.artifact, ENTRIES, cursor.as_deref());
            let page = page.await?;
            items.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        session.show(&Page::all(items), files)?;
        Ok(Exit::Succeeded)
    }
}

fn files(page: &Page<ArtifactEntry>) -> String {
    let mut table = Table::new(&["FILE", "SIZE", "PACKED"]);
    for entry in &page.items {
        table.row([
            entry.name.clone(),
            bytes(entry.size),
            bytes(entry.packed_size),
        ]);
    }
    table.text()
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    job: SelectedJob,
    #[command(flatten)]
    artifact: ArtifactOption,
    /// Job to compare with: its id, or at least four of its first or last digits
    #[arg(long, env = "SERVICE_AGAINST", value_name = "JOB", value_parser = job_name)]
    against: JobName,
    /// Print the lines of text that are missing in the other job's files, each once and in order; files without text are left out
    #[arg(long, env = "SERVICE_LINES")]
    lines: bool,
    /// Print lines of this file of the artifact only
    #[arg(long, env = "SERVICE_FILE", value_name = "FILE", requires = "lines")]
    file: Option<String>,
}

impl Diff {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let (client, job) = session.client_and_job(&self.job).await?;
        let against = self.against.id(&client).await?;
        let ask = |cursor: Option<String>| {
            let (client, artifact) = (&client, &self.artifact.artifact);
            async move {
                let page = client.artifact_diff(job, artifact, against, ENTRIES, cursor.as_deref());
                page.await
            }
        };
        let mut diff = ask(None).await?;
        if self.lines {
            if !diff.same {
                let newer = lines::fetch(session, &client, job, &diff.artifact).await?;
                let older = lines::fetch(session, &client, against, &diff.artifact).await?;
                lines::print_new(session.terminal, newer, Some(older), self.file.as_deref())?;
            }
            return Ok(Exit::Succeeded);
        }
        while let Some(cursor) = diff.next_cursor.take() {
            let page = ask(Some(cursor)).await?;
            diff.files.extend(page.files);
            diff.next_cursor = page.next_cursor;
        }
        session.show(&diff, changes)?;
        let ArtifactDiff {
            added,
            removed,
            changed,
            unchanged,
            ..
        } = &diff;
        session.report(&format!(
            "{added} added, {removed} removed, {changed} changed, {unchanged} unchanged"
        ));
        Ok(Exit::Succeeded)
    }
}

fn changes(diff: &ArtifactDiff) -> String {
    let mut table = Table::new(&["FILE", "CHANGE", "SIZE"]);
    for file in &diff.files {
        let FileChange {
            name,
            from_size,
            to_size,
        } = file;
        let (change, size) = match (from_size, to_size) {
            (None, Some(to)) => ("added", bytes(*to)),
            (Some(from), None) => ("removed", bytes(*from)),
            (Some(from), Some(to)) => ("changed", format!("{} → {}", bytes(*from), bytes(*to))),
            (None, None) => ("changed", String::new()),
        };
        table.row([name.clone(), change.to_owned(), size]);
    }
    table.text()
}
