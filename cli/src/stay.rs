//! Whether and how long a command waits for the job that it makes.

use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use client::settings::is_typed;
use client::{Client, LogQuery};
use uuid::Uuid;
use wire::ChangedJob;

use crate::clock::parse_duration;
use crate::error::Error;
use crate::exit::Exit;
use crate::format::Format;
use crate::log_lines::LogLines;
use crate::session::Session;
use crate::wait::Waited;
use crate::{follow, wait};

/// What the command does after making the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    /// Nothing.
    No,
    /// It waits for the job's end.
    Waiting { timeout: Option<Duration> },
    /// It prints the log until the job's end.
    Following { timeout: Option<Duration> },
}

#[derive(Debug, Args)]
struct StayFlags {
    /// Wait until the job and its retries have ended; the exit code shows how the last one ended
    #[arg(long, env = "SERVICE_WAIT")]
    wait: bool,
    /// Print the log until the job and its retries have ended; the exit code shows how the last one ended
    #[arg(long, env = "SERVICE_FOLLOW")]
    follow: bool,
    /// With --wait or --follow: wait at most this long, as in 90s, 30m or 1h
    #[arg(long, env = "SERVICE_TIMEOUT", value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
}

impl Stay {
    /// Prints the id of the new job, and waits for its end if a flag asks for it.
    pub(crate) async fn after(
        self,
        job: ChangedJob,
        client: &Client,
        session: &mut Session<'_>,
    ) -> Result<Exit, Error> {
        match self {
            Self::No => {
                session.show(&job, |job| id_line(job.id()))?;
                Ok(Exit::Succeeded)
            }
            Self::Following { timeout } => {
                session.report(&job.id().to_string());
                verify_watchable(&job)?;
                let mut lines = LogLines::default();
                let waited = Waited::new(job.id());
                let end = follow::follow(session, client, &waited, LogQuery::default(), &mut lines);
                let job = wait::within(timeout, &waited, end).await?;
                Ok(wait::report_end(session, &job))
            }
            Self::Waiting { timeout } => {
                print_id(session, job.id())?;
                verify_watchable(&job)?;
                let waited = Waited::new(job.id());
                let end = wait::end_of(session, client, &waited);
                let job = wait::within(timeout, &waited, end).await?;
                if session.format != Format::Table {
                    session.show(&job, |job| id_line(job.id))?;
                }
                Ok(wait::report_end(session, &job))
            }
        }
    }
}

/// The daemon answers in short to a token that may start jobs and not read them.
fn verify_watchable(job: &ChangedJob) -> Result<(), Error> {
    match job {
        ChangedJob::Whole(_) => Ok(()),
        ChangedJob::Short { id, .. } => Err(Error::Unwatched { job: *id }),
    }
}

/// Only the id, for scripts. Programs that need more choose another form.
fn id_line(job: Uuid) -> String {
    format!("{job}\n")
}

/// Prints the id of a job that the command waits for. In the forms for programs, standard output is reserved for the finished
/// job, so the id goes to standard error.
fn print_id(session: &mut Session<'_>, job: Uuid) -> Result<(), Error> {
    match session.format {
        Format::Table => session.terminal.data(&id_line(job))?,
        Format::Json | Format::Yaml => session.report(&job.to_string()),
    }
    session.terminal.flush()
}

impl FromArgMatches for Stay {
    /// Refuses a timeout without a wait. A timeout from the environment may be meant for other commands.
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let StayFlags {
            wait,
            follow,
            timeout,
        } = StayFlags::from_arg_matches(matches)?;
        match (wait, follow) {
            (_, true) => Ok(Self::Following { timeout }),
            (true, false) => Ok(Self::Waiting { timeout }),
            (false, false) if timeout.is_some() && is_typed(matches, "timeout") => {
                let text = "--timeout limits a wait; add --wait or --follow\n";
                Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, text))
            }
            (false, false) => Ok(Self::No),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Stay {
    fn augment_args(command: Command) -> Command {
        StayFlags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        StayFlags::augment_args_for_update(command)
    }
}
