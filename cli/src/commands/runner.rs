//! `everscan runner`.

use clap::Subcommand;
use wire::{Page, Runner};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, time, time_or_dash};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Forget a runner; its jobs fail
    Delete {
        /// Name or id of the runner
        runner: String,
    },
    /// List runners
    List,
    /// Make a token with which one runner can register
    RegisterToken,
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        match self {
            Self::Delete { runner } => {
                client.delete_runner(&runner).await?;
                session
                    .terminal
                    .say(&format!("runner {runner} is forgotten"));
            }
            Self::List => session.show(&Page::all(client.runners().await?), table)?,
            Self::RegisterToken => {
                let registration = client.create_registration().await?;
                session.show(&registration, |registration| {
                    format!("{}\n", registration.token)
                })?;
                session.terminal.say(&format!(
                    "good for one `everscan-runner configure` until {}",
                    time(&registration.expires_at)
                ));
            }
        }
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<Runner>) -> String {
    let mut table = Table::new(&["NAME", "RUNNING", "LABELS", "VERSION", "HEARD", "ID"]);
    for runner in &page.items {
        table.row([
            runner.name.clone(),
            format!("{} of {}", runner.running.len(), runner.capacity),
            runner.labels.join(","),
            runner.version.clone(),
            time_or_dash(runner.heard_at.as_ref()),
            runner.id.to_string(),
        ]);
    }
    table.text()
}
