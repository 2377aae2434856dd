pub(super) mod download;
mod files;
pub(super) mod lines;
mod news;
mod unpack;

use clap::{Args, Subcommand};
use wire::Page;

use super::show;
use crate::error::Error;
use crate::exit::{self, Exit};
use crate::selected_job::SelectedJob;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Delete an artifact of a finished job
    ///
    /// The job still shows its size and digests.
    Delete {
        #[command(flatten)]
        job: SelectedJob,
        #[command(flatten)]
        artifact: ArtifactOption,
    },
    /// Compare the files of an artifact with those of another job's artifact of the same name
    ///
    /// A file has changed if its length or its CRC-32 differs. With --lines the texts are compared, and only lines that are
    /// missing in the other job's files are printed.
    Diff(files::Diff),
    /// Fetch an artifact as a zip file
    ///
    /// The file appears once it is complete and undamaged; an older file of that name is replaced. For standard output, only the
    /// exit code reports damage.
    Download(download::Download),
    /// List the files in an artifact, without fetching it
    Files(files::Files),
    /// List the artifacts of a job
    List {
        #[command(flatten)]
        job: SelectedJob,
    },
    /// Print the lines of another scan's artifact that are new to the scan of the job
    ///
    /// The new lines are in the artifact of that scan's newest success, as of the time when a runner claimed the job, and were
    /// not in the artifact that the last successful job of the job's own scan read. Each line is printed once. All lines are
    /// printed if there was no such job, and, with a warning, if its artifact is gone. For steps: --job-id is set there.
    #[command(after_help = exit::NEWS_CODES)]
    News(news::News),
}

#[derive(Debug, Args)]
pub(crate) struct ArtifactOption {
    /// Name or id of the artifact; NAME also finds NAME.zip
    #[arg(
        long,
        short,
        visible_alias = "artifact-name",
        env = "SERVICE_ARTIFACT",
        value_name = "NAME"
    )]
    artifact: String,
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Delete {
                job,
                artifact: ArtifactOption { artifact },
            } => {
                let job = job.name()?.to_string();
                let client = session.client()?;
                client.delete_artifact(&job, &artifact).await?;
                session.report(&format!("artifact {artifact} is deleted"));
                Ok(Exit::Succeeded)
            }
            Self::Diff(command) => command.run(session).await,
            Self::Files(command) => command.run(session).await,
            Self::Download(command) => command.run(session).await,
            Self::News(command) => command.run(session).await,
            Self::List { job } => {
                let (client, id) = session.client_and_job(&job).await?;
                let page = Page::all(client.artifacts(id).await?);
                session.show(&page, |page| {
                    show::artifacts(&page.items).unwrap_or_default()
                })?;
                if page.items.is_empty() {
                    session.report("the job has no artifacts");
                }
                Ok(Exit::Succeeded)
            }
        }
    }
}
