//! `everscan var set`.

use std::path::PathBuf;

use clap::Args;
use wire::SetValue;

use crate::error::Error;
use crate::exit::Exit;
use crate::project::ProjectOption;
use crate::session::Session;
use crate::value;

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Name of the var: letters, digits and _
    name: String,
    /// Its value
    #[arg(
        required_unless_present = "file",
        conflicts_with = "file",
        allow_hyphen_values = true
    )]
    value: Option<String>,
    /// File that holds the value, or - for standard input; one line end at its end is cut
    #[arg(long, env = "SERVICE_FILE", value_name = "PATH")]
    file: Option<PathBuf>,
    #[command(flatten)]
    project: ProjectOption,
}

impl Set {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let value = match (self.value, self.file) {
            (_, Some(path)) => value::from_file(&path)?,
            (value, None) => value.unwrap_or_default(),
        };
        let client = session.client()?;
        let project = self.project.choose(&client).await?;
        let set = SetValue { value };
        let var = client.set_var(&project, &self.name, &set).await?;
        let (name, version) = (var.named.name, var.named.version);
        session
            .terminal
            .say(&format!("var {name} is set in version {version}"));
        Ok(Exit::Succeeded)
    }
}
