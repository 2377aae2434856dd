//! `everscan runner register-token`.

use clap::Args;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::time;

#[derive(Debug, Args)]
pub(crate) struct RegisterToken {}

impl RegisterToken {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let registration = session.client()?.create_registration().await?;
        session.show(&registration, |registration| {
            format!("{}\n", registration.token)
        })?;
        session.terminal.say(&format!(
            "good for one `everscan-runner configure` until {}",
            time(&registration.expires_at)
        ));
        Ok(Exit::Succeeded)
    }
}
