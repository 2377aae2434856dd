//! `everscan token create`.

use std::time::Duration;

use clap::Args;
use wire::CreateToken;

use crate::duration;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// What to call it; it appears beside everything that is done with it
    #[arg(long, env = "SERVICE_NAME")]
    name: String,
    /// What it may do, as in job:read; may be repeated
    #[arg(long, env = "SERVICE_SCOPE", required = true, value_delimiter = ',')]
    scope: Vec<String>,
    /// When it ends, as in 30d; never when left out
    #[arg(long, env = "SERVICE_EXPIRES_IN", value_name = "DURATION", value_parser = duration::parse)]
    expires_in: Option<Duration>,
}

impl Create {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let request = CreateToken {
            name: self.name,
            scopes: self.scope,
            expires_in_seconds: self.expires_in.map(|duration| duration.as_secs()),
        };
        let created = session.client()?.create_token(&request).await?;
        session.show(&created, |created| format!("{}\n", created.secret))?;
        session
            .terminal
            .say("keep it in SERVICE_TOKEN or a file; it is not shown again");
        Ok(Exit::Succeeded)
    }
}
