//! How a command line names a job.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use client::settings::is_typed;
use uuid::Uuid;

use crate::error::Error;

/// A job named by an argument, by a flag, or by the environment of a step.
#[derive(Debug)]
pub(crate) struct SelectedJob(Option<Uuid>);

#[derive(Debug, Args)]
struct Flags {
    /// Id of the job; may be left out where --job-id is given
    #[arg(value_name = "JOB", value_parser = job_id)]
    job: Option<Uuid>,
    /// Id of the job
    #[arg(long, short, env = "SERVICE_JOB_ID", value_name = "JOB", value_parser = job_id)]
    job_id: Option<Uuid>,
}

/// Reads the id of a job. The error is a sentence for the person who wrote it.
pub(crate) fn job_id(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|_| {
        "a job's id looks like 0192f0c1-2d3e-7a4b-8c5d-000000000001; `everscan scan dispatch` prints it, and \
         `everscan job list` shows those of all jobs"
            .to_owned()
    })
}

impl SelectedJob {
    pub(crate) fn id(&self) -> Result<Uuid, Error> {
        self.0.ok_or_else(|| Error::Usage {
            what: "no job is named".to_owned(),
            hint: "give its id as an argument or with --job-id; `everscan job list` knows it",
        })
    }
}

impl FromArgMatches for SelectedJob {
    /// Refuses two jobs on the command line. An argument wins over the environment, which in a step names the step's
    /// own job.
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Flags { job, job_id } = Flags::from_arg_matches(matches)?;
        if job.is_some() && is_typed(matches, "job_id") {
            let text = "a job is named twice, as an argument and with --job-id; a command is about one job\n";
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        Ok(Self(job.or(job_id)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for SelectedJob {
    fn augment_args(command: Command) -> Command {
        Flags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Flags::augment_args_for_update(command)
    }
}
