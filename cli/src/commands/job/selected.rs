//! Which job a command is about.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use uuid::Uuid;

use crate::arguments::is_flagged;
use crate::error::Error;
use crate::id;

/// A job named in the place of an argument, by a flag, or by the environment of a step.
#[derive(Debug)]
pub(crate) struct SelectedJob(Option<Uuid>);

/// The ways to name one.
#[derive(Debug, Args)]
struct Ways {
    /// Id of the job; may be left out where --job-id is given
    #[arg(value_name = "JOB", value_parser = id::job)]
    job: Option<Uuid>,
    /// Id of the job
    #[arg(long, short, env = "SERVICE_JOB_ID", value_name = "JOB", value_parser = id::job)]
    job_id: Option<Uuid>,
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
    /// Two jobs are one too many, but the argument wins over the environment: that of a step always names the step's own.
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Ways { job, job_id } = Ways::from_arg_matches(matches)?;
        if job.is_some() && is_flagged(matches, "job_id") {
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
        Ways::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Ways::augment_args_for_update(command)
    }
}
