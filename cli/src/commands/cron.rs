//! `everscan cron`.

mod describe;
mod next;

use clap::Subcommand;
use workflow::{Cron, excerpts};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say a schedule in words
    Describe(describe::Describe),
    /// List the next times at which a schedule is due
    Next(next::Next),
}

impl Command {
    pub(crate) fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Describe(command) => command.run(session),
            Self::Next(command) => command.run(session),
        }
    }
}

/// Reads a schedule from the command line.
fn read(text: &str) -> Result<Cron, Error> {
    Cron::parse(text).map_err(|errors| {
        let faults: Vec<_> = errors
            .iter()
            .map(workflow::cron::CronError::fault)
            .collect();
        Error::Refused {
            excerpts: excerpts("EXPR", text, &faults),
        }
    })
}
