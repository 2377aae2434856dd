//! `everscan callback rule`

use std::path::PathBuf;

use clap::Subcommand;
use client::Client;
use wire::CallbackRules;

use super::Named;
use crate::error::Error;
use crate::limits::CALLBACK_RULES_BYTES;
use crate::reading::read_given;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the fixed answers of a callback server and what it ignores, as YAML to edit
    Show {
        #[command(flatten)]
        of: Named,
    },
    /// Replace the fixed answers of a callback server and what it ignores
    Set {
        #[command(flatten)]
        of: Named,
        /// A file of YAML or JSON, as `show` prints it; - reads standard input
        file: PathBuf,
    },
}

impl Command {
    pub(super) async fn run(self, session: &mut Session<'_>, client: &Client) -> Result<(), Error> {
        match self {
            Self::Show { of } => {
                let found = of.find(client).await?;
                let rules = client.callback_rules(&found.id).await?;
                let text = serde_yaml::to_string(&rules);
                let text =
                    text.map_err(|error| usage(format!("the rules are no YAML: {error}")))?;
                session.show(&rules, |_| text)
            }
            Self::Set { of, file } => {
                let text = read_given(&file, CALLBACK_RULES_BYTES)?;
                let rules: CallbackRules = serde_yaml::from_str(&text)
                    .map_err(|error| usage(format!("{}: {error}", file.display())))?;
                let found = of.find(client).await?;
                let set = client.set_callback_rules(&found.id, &rules).await?;
                let count = set.rules.len();
                session.report(&format!("callback server {} has {count} rules", found.name));
                Ok(())
            }
        }
    }
}

fn usage(what: String) -> Error {
    Error::Usage {
        what,
        hint: "`everscan callback rule show NAME` prints rules as they are written",
    }
}
