use std::path::PathBuf;

use clap::Subcommand;
use wire::SetValue;

use crate::commands::named::{Delete, Kind, List, ProjectOption, VersionOption};
use crate::error::Error;
use crate::exit::Exit;
use crate::reading::read_value;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give a var a value, which jobs read that are claimed later
    Set {
        /// Name of the var: letters, digits and _
        name: String,
        /// Its value
        #[arg(
            required_unless_present = "file",
            conflicts_with = "file",
            allow_hyphen_values = true
        )]
        value: Option<String>,
        /// File that holds the value, or - for standard input; a line end at the end is cut
        #[arg(long, env = "SERVICE_FILE", value_name = "PATH")]
        file: Option<PathBuf>,
        #[command(flatten)]
        version: VersionOption,
        #[command(flatten)]
        project: ProjectOption,
    },
    /// Print the value of a var
    Get {
        /// Name of the var
        name: String,
        #[command(flatten)]
        project: ProjectOption,
    },
    /// List the vars of a project without their values
    List(List),
    /// Remove a var
    Delete(Delete),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Set {
                name,
                value,
                file,
                version,
                project,
            } => {
                let value = match (value, file) {
                    (_, Some(path)) => read_value(&path)?,
                    (value, None) => value.unwrap_or_default(),
                };
                let client = session.client()?;
                let project = project.choose(&client).await?;
                let (set, expected) = (SetValue { value }, version.expected());
                let var = client.set_var(&project, &name, &set, expected).await?;
                let (name, version) = (var.named.name, var.named.version);
                session.report(&format!("var {name} is set in version {version}"));
                Ok(Exit::Succeeded)
            }
            Self::Get { name, project } => {
                let client = session.client()?;
                let project = project.choose(&client).await?;
                let var = client.var(&project, &name).await?;
                session.show(&var, |var| format!("{}\n", var.value))?;
                Ok(Exit::Succeeded)
            }
            Self::List(command) => command.run(Kind::Var, session).await,
            Self::Delete(command) => command.run(Kind::Var, session).await,
        }
    }
}
