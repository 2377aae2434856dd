//! `everscan member`

use clap::Subcommand;
use wire::{Member, Page, Role};

use super::user::role;
use crate::commands::named::ProjectOption;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::Table;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the users who have a role in a project
    List {
        #[command(flatten)]
        project: ProjectOption,
    },
    /// Give a user a role in a project, in place of an earlier one
    #[command(visible_alias = "add")]
    Set {
        /// Name of the user
        user: String,
        /// What the user may do; each role includes those before it
        #[arg(value_parser = role())]
        role: Role,
        #[command(flatten)]
        project: ProjectOption,
    },
    /// Take a user's role in a project away
    Remove {
        /// Name of the user
        user: String,
        #[command(flatten)]
        project: ProjectOption,
    },
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        match self {
            Self::List { project } => {
                let project = project.choose(&client).await?;
                session.show(&Page::all(client.members(&project).await?), table)?;
            }
            Self::Set {
                user,
                role,
                project,
            } => {
                let project = project.choose(&client).await?;
                let member = client.set_member(&project, &user, role).await?;
                let (user, role) = (member.user, member.role.as_str());
                session.report(&format!("{user} is {role} of {project}"));
            }
            Self::Remove { user, project } => {
                let project = project.choose(&client).await?;
                client.delete_member(&project, &user).await?;
                session.report(&format!("{user} has no role in {project} any more"));
            }
        }
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<Member>) -> String {
    let mut table = Table::new(&["USER", "KIND", "STATE", "ROLE"]);
    for member in &page.items {
        table.row([
            member.user.clone(),
            member.kind.as_str().to_owned(),
            member.state.as_str().to_owned(),
            member.role.as_str().to_owned(),
        ]);
    }
    table.text()
}
