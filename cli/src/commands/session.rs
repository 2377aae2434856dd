use clap::Subcommand;
use uuid::Uuid;
use wire::Page;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, time};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List your sessions, the newest first
    List,
    /// End one of your sessions
    End {
        /// Id of the session
        session: Uuid,
    },
    /// Make a link that signs one browser in, with the rights of this token or login
    Link,
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        match self {
            Self::List => session.show(&Page::all(client.sessions().await?), table)?,
            Self::End { session: id } => {
                client.delete_session(id).await?;
                session.report(&format!("session {id} is ended"));
            }
            Self::Link => {
                let made = client.create_sign_in_link().await?;
                let url = client.url_of(&made.url_path);
                session.show(&made, |_| format!("{url}\n"))?;
                session.report(&format!(
                    "good for one browser until {}",
                    time(&made.expires_at)
                ));
            }
        }
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<wire::Session>) -> String {
    let mut table = Table::new(&[
        "DEVICE",
        "ADDRESS",
        "MADE WITH",
        "CREATED",
        "SEEN",
        "EXPIRES",
        "ID",
    ]);
    for session in &page.items {
        let token = session.token.as_ref();
        let this = if session.current { " (this one)" } else { "" };
        table.row([
            format!("{}{this}", session.device),
            session.address.to_string(),
            token.map_or("-".to_owned(), |name| format!("token {name}")),
            time(&session.created_at),
            time(&session.seen_at),
            time(&session.expires_at),
            session.id.to_string(),
        ]);
    }
    table.text()
}
