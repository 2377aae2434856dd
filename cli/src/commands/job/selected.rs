//! Which job a command is about.

use clap::Args;
use uuid::Uuid;

use crate::error::Error;

/// A job named in the place of an argument, by a flag, or by the environment of a step.
#[derive(Debug, Args)]
pub(crate) struct SelectedJob {
    /// Id of the job; may be left out where --job-id is given
    #[arg(value_name = "JOB")]
    job: Option<Uuid>,
    #[command(flatten)]
    flag: JobFlag,
}

/// A job named by a flag, or by the environment of a step.
#[derive(Debug, Args)]
pub(crate) struct JobFlag {
    /// Id of the job
    #[arg(long, short, env = "SERVICE_JOB_ID", value_name = "JOB")]
    job_id: Option<Uuid>,
}

impl SelectedJob {
    pub(crate) fn id(&self) -> Result<Uuid, Error> {
        self.job.map_or_else(|| self.flag.id(), Ok)
    }
}

impl JobFlag {
    pub(crate) fn id(&self) -> Result<Uuid, Error> {
        self.job_id.ok_or_else(|| Error::Usage {
            what: "no job is named".to_owned(),
            hint: "give its id with --job-id; `everscan job list` knows it",
        })
    }
}
