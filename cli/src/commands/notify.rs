//! `everscan notify`

mod rule;

use clap::Subcommand;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Rules: which events go to which channels
    #[command(subcommand)]
    Rule(rule::Command),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Rule(command) => command.run(session).await,
        }
    }
}
