//! `everscan secret set`. The value is never an argument, because other users of the machine can read those.

use std::path::PathBuf;

use clap::Args;
use wire::SetValue;

use crate::error::Error;
use crate::exit::Exit;
use crate::hidden_input;
use crate::limits;
use crate::project::ProjectOption;
use crate::session::Session;
use crate::value;

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Name of the secret: letters, digits and _
    name: String,
    /// File that holds the value, or - for standard input; one line end at its end is cut. Without it you are asked
    #[arg(long, env = "SERVICE_FILE", value_name = "PATH")]
    file: Option<PathBuf>,
    #[command(flatten)]
    project: ProjectOption,
}

impl Set {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let value = match self.file {
            Some(path) => value::from_file(&path)?,
            None if hidden_input::is_possible() => {
                let question = format!("value of {}: ", self.name);
                hidden_input::ask(session.terminal, &question).await?
            }
            None => {
                return Err(Error::Usage {
                    what: "no value is given, and nobody is there to be asked".to_owned(),
                    hint: "name a file with --file, or pipe the value into --file -",
                });
            }
        };
        let project = self.project.choose(&client).await?;
        let is_short = value.trim().chars().count() < limits::SECRET_CHARS;
        let set = SetValue { value };
        let secret = client.set_secret(&project, &self.name, &set).await?;
        let (name, version) = (secret.name, secret.version);
        session
            .terminal
            .say(&format!("secret {name} is set in version {version}"));
        if is_short {
            session.terminal.say(&format!(
                "warning: it has fewer than {} characters, so that it may occur in other text: masking it there would reveal \
                 it; use a longer one",
                limits::SECRET_CHARS
            ));
        }
        Ok(Exit::Succeeded)
    }
}
