//! `everscan notify`

mod channel;
mod log;
mod owner;
mod rule;

use clap::Subcommand;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Channels: where messages go
    #[command(subcommand)]
    Channel(channel::Command),
    /// Rules: which events go to which channels
    #[command(subcommand)]
    Rule(rule::Command),
    /// Show what was sent, the newest first
    Log(log::Log),
    /// Send a failed message again, or the waiting one now
    Retry(log::Retry),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Channel(command) => command.run(session).await,
            Self::Rule(command) => command.run(session).await,
            Self::Log(command) => command.run(session).await,
            Self::Retry(command) => command.run(session).await,
        }
    }
}
