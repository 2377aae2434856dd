//! What `everscan var` and `everscan secret` have in common: both are named values of a project, and neither of these
//! commands sees a value.

use clap::Args;
use wire::Page;

use crate::error::Error;
use crate::exit::Exit;
use crate::project::ProjectOption;
use crate::session::Session;
use crate::table::names;

/// Which of the two.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Var,
    Secret,
}

/// `everscan var list` and `everscan secret list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    project: ProjectOption,
}

impl List {
    pub(crate) async fn run(self, kind: Kind, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let project = self.project.choose(&client).await?;
        let items = match kind {
            Kind::Var => client.vars(&project).await?,
            Kind::Secret => client.secrets(&project).await?,
        };
        let page = Page {
            items,
            next_cursor: None,
            damaged: Vec::new(),
        };
        session.show(&page, names)?;
        Ok(Exit::Succeeded)
    }
}

/// `everscan var delete` and `everscan secret delete`.
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// The name it was set under
    name: String,
    #[command(flatten)]
    project: ProjectOption,
}

impl Delete {
    pub(crate) async fn run(self, kind: Kind, session: &mut Session<'_>) -> Result<Exit, Error> {
        let Self { name, project } = self;
        let client = session.client()?;
        let project = project.choose(&client).await?;
        let word = match kind {
            Kind::Var => {
                client.delete_var(&project, &name).await?;
                "var"
            }
            Kind::Secret => {
                client.delete_secret(&project, &name).await?;
                "secret"
            }
        };
        session.terminal.say(&format!("{word} {name} is deleted"));
        Ok(Exit::Succeeded)
    }
}
