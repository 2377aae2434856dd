use clap::Subcommand;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::time;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a link that signs one browser in, with the rights of this access token
    Link,
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        match self {
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
