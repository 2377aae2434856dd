//! `everscan callback token`

use clap::Subcommand;
use client::Client;
use wire::{CallbackToken, CreateCallbackToken, Page};

use super::Named;
use super::shown::named;
use crate::commands::token::{Life, parse_life};
use crate::error::Error;
use crate::session::Session;
use crate::table::{Table, time, time_or_dash};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a name and print it
    Create {
        #[command(flatten)]
        of: Named,
        /// Where you plant it; each interaction shows this
        #[arg(long, env = "SERVICE_NOTE", default_value = "")]
        note: String,
        /// How long the name is answered, as in 90d, or never to end it
        #[arg(long, env = "SERVICE_EXPIRES_IN", value_name = "DURATION", value_parser = parse_life, default_value = "90d")]
        expires_in: Life,
    },
    /// List the names that are answered
    List {
        #[command(flatten)]
        of: Named,
    },
    /// End a name: it is not answered any more
    End {
        #[command(flatten)]
        of: Named,
        /// Tag of the name
        tag: String,
    },
}

impl Command {
    pub(super) async fn run(self, session: &mut Session<'_>, client: &Client) -> Result<(), Error> {
        match self {
            Self::Create {
                of,
                note,
                expires_in,
            } => {
                let found = of.find(client).await?;
                let request = CreateCallbackToken {
                    note,
                    expires_in_seconds: expires_in.seconds(),
                    never_expires: expires_in == Life::Unlimited,
                };
                let token = client.create_callback_token(&found.id, &request).await?;
                // Only the name, for scripts.
                session.show(&token, |token| named(&token.names) + "\n")
            }
            Self::List { of } => {
                let found = of.find(client).await?;
                let tokens = client.callback_tokens(&found.id).await?;
                session.show(&Page::all(tokens), table)
            }
            Self::End { of, tag } => {
                let found = of.find(client).await?;
                client.end_callback_token(&found.id, &tag).await?;
                session.report(&format!(
                    "the name with the tag {tag} is not answered any more"
                ));
                Ok(())
            }
        }
    }
}

fn table(page: &Page<CallbackToken>) -> String {
    let mut table = Table::new(&["NAME", "NOTE", "CREATED", "EXPIRES", "TAG"]);
    for token in &page.items {
        table.row([
            named(&token.names),
            token.note.clone(),
            time(&token.created_at),
            time_or_dash(token.expires_at.as_ref()),
            token.tag.clone(),
        ]);
    }
    table.text()
}
