//! `everscan notify`

mod channel;
mod log;
mod owner;
mod rule;

use clap::Subcommand;
use client::Client;
use wire::{Delivery, OpenCondition, SendResult};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Fields, time};

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
    /// Send a failed message again, or what waits now
    Retry(log::Retry),
}

/// Adds where messages about a job went, and what came of them.
pub(super) fn sent(fields: Fields, messages: &[Delivery]) -> Fields {
    messages.iter().fold(fields, |fields, message| {
        let SendResult { result, reply } = &message.result;
        let (result, at) = (result.as_str(), time(&message.at));
        let channel = &message.channel;
        fields.add(
            "message",
            format!("to {channel}, {result}: {reply}, at {at}"),
        )
    })
}

/// Reports how many conditions a new channel or rule of a project, or of the instance, does not hear of.
async fn report_open(session: &mut Session<'_>, client: &Client, project: Option<&str>) {
    // The token may not see conditions.
    let open = client.conditions().await.unwrap_or_default();
    let concerns = |it: &&OpenCondition| project.is_none() || it.project.as_deref() == project;
    let are = match open.iter().filter(concerns).count() {
        0 => return,
        1 => "1 condition is".to_owned(),
        more => format!("{more} conditions are"),
    };
    session.report(&format!(
        "{are} open already, and not sent; `everscan condition list` shows them"
    ));
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
