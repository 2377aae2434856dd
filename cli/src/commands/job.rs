mod artifact;
mod download;
mod list;
mod logs;
mod rerun;
mod show;

use std::time::Duration;

use clap::Subcommand;
use wire::JobState;

use crate::clock::parse_duration;
use crate::error::Error;
use crate::exit::{self, Exit};
use crate::selected_job::{JobName, SelectedJob, job_name};
use crate::session::Session;
use crate::wait;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Artifacts: the files that jobs leave
    #[command(subcommand)]
    Artifact(artifact::Command),
    /// End a job
    ///
    /// Prints the state of the job afterwards.
    Cancel {
        #[command(flatten)]
        job: SelectedJob,
    },
    /// Print what the expressions of a job read, as a context for `everscan expr eval`
    ///
    /// The values were frozen when a runner claimed the job. Secrets have no values here.
    Context {
        #[command(flatten)]
        job: SelectedJob,
    },
    /// Delete finished jobs, with their logs and artifacts
    ///
    /// The facts that expressions read about the scan's newest successes stay, and so do its counters.
    Delete {
        /// Ids of the jobs, or at least four of their first or last digits
        #[arg(required = true, value_name = "JOB", value_parser = job_name)]
        jobs: Vec<JobName>,
    },
    /// Fetch the only artifact of a job, or a zip of all
    ///
    /// In a zip of all, each artifact has a folder.
    Download(download::Download),
    /// List jobs, newest first
    List(list::List),
    /// Print the log of a job
    #[command(after_help = exit::CODES)]
    Logs(logs::Logs),
    /// Run a finished job again, as a new job with the same inputs
    ///
    /// The new job runs the revision of the earlier one. Vars and secrets are read again. Prints the id of the new job,
    /// as `scan dispatch` does.
    #[command(after_help = exit::CODES)]
    Rerun(rerun::Rerun),
    /// Show a job with its steps and artifacts
    Show {
        #[command(flatten)]
        job: SelectedJob,
    },
    /// Wait until a job ends; the exit code shows how it ended
    ///
    /// It also waits for the jobs that retry it. Prints the final state of the last job.
    #[command(after_help = exit::CODES)]
    Wait {
        #[command(flatten)]
        job: SelectedJob,
        /// Wait no longer than this, as in 90s, 30m or 1h
        #[arg(long, env = "SERVICE_TIMEOUT", value_name = "DURATION", value_parser = parse_duration)]
        timeout: Option<Duration>,
    },
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Artifact(command) => command.run(session).await,
            Self::Cancel { job } => {
                // The daemon knows parts of ids too, and looking one up takes another right.
                let job = job.name()?.to_string();
                let job = session.client()?.cancel_job(&job).await?;
                session.show(&job, |job| format!("{}\n", job.state().as_str()))?;
                Ok(Exit::Succeeded)
            }
            Self::Context { job } => show_context(&job, session).await,
            // Reports each deleted job, and stops at the first job that cannot be deleted.
            Self::Delete { jobs } => {
                let client = session.client()?;
                for job in jobs {
                    client.delete_job(&job.to_string()).await?;
                    session.report(&format!("job {job} is deleted"));
                }
                Ok(Exit::Succeeded)
            }
            Self::Download(command) => command.run(session).await,
            Self::List(command) => command.run(session).await,
            Self::Logs(command) => command.run(session).await,
            Self::Rerun(command) => command.run(session).await,
            Self::Show { job } => {
                let (client, id) = session.client_and_job(&job).await?;
                let job = client.job_with_messages(id).await?;
                session.show(&job, show::text)?;
                Ok(Exit::Succeeded)
            }
            Self::Wait { job, timeout } => {
                let (client, id) = session.client_and_job(&job).await?;
                let waited = wait::Waited::new(id);
                let end = wait::end_of(session, &client, &waited);
                let job = wait::within(timeout, &waited, end).await?;
                session.show(&job, |job| format!("{}\n", job.state.as_str()))?;
                if job.state == JobState::Succeeded {
                    return Ok(Exit::Succeeded);
                }
                Ok(wait::report_end(session, &job))
            }
        }
    }
}

async fn show_context(job: &SelectedJob, session: &mut Session<'_>) -> Result<Exit, Error> {
    let (client, id) = session.client_and_job(job).await?;
    let found = client.job_context(id).await?;
    session.show_json(&found.context)?;
    let secrets = found.secrets.iter();
    let secrets: Vec<String> = secrets
        .map(|(name, version)| format!("{name} (version {version})"))
        .collect();
    if !secrets.is_empty() {
        session.report(&format!("it also named secrets: {}", secrets.join(", ")));
    }
    Ok(Exit::Succeeded)
}
