//! Names of jobs on the command line.

use std::fmt;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use client::Client;
use client::settings::is_typed;
use uuid::Uuid;

use crate::error::Error;

/// A job named by an argument, by a flag, or by the environment of a step.
#[derive(Debug)]
pub(crate) struct SelectedJob(Option<JobName>);

/// A job's id, or a part of it that the daemon looks up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobName {
    Id(Uuid),
    /// The first or last digits of the id.
    Part(String),
}

/// The least number of digits of a part. The daemon accepts no fewer.
const PART_DIGITS: usize = 4;

#[derive(Debug, Args)]
struct Flags {
    /// Id of the job, or at least four of its first or last digits; may be left out where --job-id is given
    #[arg(value_name = "JOB", value_parser = job_name)]
    job: Option<JobName>,
    /// Id of the job, or at least four of its first or last digits
    #[arg(long, short, env = "SERVICE_JOB_ID", value_name = "JOB", value_parser = job_name)]
    job_id: Option<JobName>,
}

/// Parses the name of a job. The error is a sentence for the user.
pub(crate) fn job_name(text: &str) -> Result<JobName, String> {
    if let Ok(id) = text.parse() {
        return Ok(JobName::Id(id));
    }
    let digits = text.chars().filter(|digit| *digit != '-');
    let (mut count, mut is_hexadecimal) = (0, true);
    for digit in digits {
        count += 1;
        is_hexadecimal &= digit.is_ascii_hexdigit();
    }
    if is_hexadecimal && count >= PART_DIGITS {
        return Ok(JobName::Part(text.to_owned()));
    }
    Err(format!(
        "a job's id looks like 0192f0c1-2d3e-7a4b-8c5d-000000000001, and {PART_DIGITS} or more of its first or last digits \
         will do; `everscan scan dispatch` prints it, and `everscan job list` shows the last digits of all"
    ))
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Part(part) => f.write_str(part),
        }
    }
}

impl JobName {
    /// The whole id. The daemon looks it up if only a part is given.
    pub(crate) async fn id(&self, client: &Client) -> Result<Uuid, Error> {
        match self {
            Self::Id(id) => Ok(*id),
            Self::Part(part) => Ok(client.job_by_part(part).await?.id),
        }
    }
}

impl SelectedJob {
    pub(crate) fn name(&self) -> Result<&JobName, Error> {
        self.0.as_ref().ok_or_else(|| Error::Usage {
            what: "no job is named".to_owned(),
            hint: "give its id as an argument or with --job-id; `everscan job list` knows it",
        })
    }
}

impl FromArgMatches for SelectedJob {
    /// Refuses two jobs on the command line. An argument wins over the environment, which in a step names the job of the step.
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
