//! Whether a dispatch waits for its job, and how long.

use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use client::settings::is_typed;

use crate::clock::parse_duration;

/// What a dispatch does after making the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stay {
    /// Nothing.
    No,
    /// It waits for the job's end.
    Waiting { timeout: Option<Duration> },
    /// It prints the log until the job's end.
    Following { timeout: Option<Duration> },
}

#[derive(Debug, Args)]
struct Flags {
    /// Wait until the job is over, and end as the job ended
    #[arg(long, env = "SERVICE_WAIT")]
    wait: bool,
    /// Print the log until the job is over, and end as the job ended
    #[arg(long, env = "SERVICE_FOLLOW")]
    follow: bool,
    /// With --wait or --follow: wait no longer than this, as in 90s, 30m or 1h
    #[arg(long, env = "SERVICE_TIMEOUT", value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
}

impl FromArgMatches for Stay {
    /// Refuses a timeout without a wait. A timeout from the environment may be meant for other commands.
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Flags {
            wait,
            follow,
            timeout,
        } = Flags::from_arg_matches(matches)?;
        match (wait, follow) {
            (_, true) => Ok(Self::Following { timeout }),
            (true, false) => Ok(Self::Waiting { timeout }),
            (false, false) if timeout.is_some() && is_typed(matches, "timeout") => {
                let text =
                    "--timeout bounds a wait, and nothing is waited for; add --wait or --follow\n";
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
        Flags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Flags::augment_args_for_update(command)
    }
}
