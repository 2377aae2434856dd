//! `everscan token`.

use std::time::Duration;

use clap::Subcommand;
use wire::{CreateToken, Page, Token};

use crate::clock::parse_duration;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, time, time_or_dash};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make an access token and print it, this once
    Create {
        /// What to call it; it appears beside everything that is done with it
        #[arg(long, env = "SERVICE_NAME")]
        name: String,
        /// What it may do, as in job:read; may be repeated
        #[arg(long, env = "SERVICE_SCOPE", required = true, value_delimiter = ',')]
        scope: Vec<String>,
        /// When it ends, as in 30d; never when left out
        #[arg(long, env = "SERVICE_EXPIRES_IN", value_name = "DURATION", value_parser = parse_duration)]
        expires_in: Option<Duration>,
    },
    /// List access tokens without their secrets
    List,
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        match self {
            Self::Create {
                name,
                scope,
                expires_in,
            } => {
                let request = CreateToken {
                    name,
                    scopes: scope,
                    expires_in_seconds: expires_in.map(|duration| duration.as_secs()),
                };
                let created = client.create_token(&request).await?;
                session.show(&created, |created| format!("{}\n", created.secret))?;
                session
                    .terminal
                    .say("keep it in SERVICE_TOKEN or a file; it is not shown again");
            }
            Self::List => session.show(&Page::all(client.tokens().await?), table)?,
        }
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<Token>) -> String {
    let mut table = Table::new(&["NAME", "SCOPES", "CREATED", "EXPIRES", "ID"]);
    for token in &page.items {
        table.row([
            token.name.clone(),
            token.scopes.join(","),
            time(&token.created_at),
            time_or_dash(token.expires_at.as_ref()),
            token.id.to_string(),
        ]);
    }
    table.text()
}
