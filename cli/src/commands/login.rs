//! `everscan login`, `everscan logout` and `everscan whoami`

use std::time::Duration;

use clap::Args;
use client::{Client, Secret};
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;
use wire::{CredentialKind, ErrorCode, Me};

use super::user::roles;
use crate::connection::TokenSource;
use crate::error::Error;
use crate::exit::Exit;
use crate::limits;
use crate::login::LoginFile;
use crate::session::Session;
use crate::table::{Fields, time};

pub(crate) async fn login(session: &mut Session<'_>) -> Result<Exit, Error> {
    let client = session.connection.anonymous()?;
    // Before a person confirms something that cannot be saved.
    let file = LoginFile::of(&client)?;
    let begun = client.create_device_login(&device()).await?;
    let url = client.url_of(&begun.url_path);
    session.report(&format!(
        "open this address in a browser:\n\n  {url}\n\nand confirm the code {}",
        begun.user_code
    ));
    let life = Duration::from_secs(begun.expires_in_seconds);
    let confirmed = timeout(life, confirmation(&client, &begun.device_code)).await;
    let (id, secret) = confirmed.unwrap_or(Err(Error::NotConfirmed))?;
    file.save(id, &secret)?;
    let me = client.with_token(secret).me().await?;
    session.report(&format!("signed in as {}", me.user.unwrap_or_default()));
    match session.connection.token {
        TokenSource::Login => {}
        TokenSource::Given(_) | TokenSource::File(_) => session.report(
            "warning: other commands do not use this login, because SERVICE_TOKEN or a token file is set",
        ),
    }
    Ok(Exit::Succeeded)
}

/// The name under which the person who confirms sees this device.
fn device() -> String {
    let host = rustix::system::uname();
    format!("everscan on {}", host.nodename().to_string_lossy())
}

/// Asks until a person has confirmed the sign-in, or the code has ended.
async fn confirmation(client: &Client, device_code: &str) -> Result<(Uuid, Secret), Error> {
    loop {
        let asked = Instant::now();
        match client.await_device_login(device_code).await {
            Ok((session, secret)) => return Ok((session.id, secret)),
            Err(error) if error.code() == Some(ErrorCode::LoginPending) => {
                sleep_until(asked + limits::ASK_AGAIN).await;
            }
            Err(error) if error.code() == Some(ErrorCode::NotFound) => {
                return Err(Error::NotConfirmed);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Logout {
    /// Sign out on all devices and in all browsers, with the credential that is in use
    #[arg(long, env = "SERVICE_EVERYWHERE")]
    everywhere: bool,
    /// With --everywhere: also revoke your access tokens
    #[arg(long, env = "SERVICE_TOKENS", requires = "everywhere")]
    tokens: bool,
}

impl Logout {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        if self.everywhere {
            let client = session.client()?;
            client.delete_sessions(self.tokens).await?;
            // With a token of somebody else, the login of this machine goes on.
            if let Ok(file) = LoginFile::of(&client)
                && let Ok(Some(login)) = file.read()
                && let Err(error) = client.with_token(login.secret()).me().await
                && error.code() == Some(ErrorCode::Unauthorized)
            {
                file.remove()?;
            }
            session.report(match self.tokens {
                true => "signed out everywhere, and your tokens are revoked",
                false => "signed out everywhere; your tokens stay valid",
            });
            return Ok(Exit::Succeeded);
        }
        let client = session.connection.anonymous()?;
        let file = LoginFile::of(&client)?;
        let Some(login) = file.read()? else {
            session.report(&format!("no login is saved for {}", client.url_of("")));
            return Ok(Exit::Succeeded);
        };
        let client = client.with_token(login.secret());
        match client.delete_session(login.session).await {
            Ok(()) => {}
            // It has ended already.
            Err(error) if error.code() == Some(ErrorCode::Unauthorized) => {}
            Err(error) => return Err(error.into()),
        }
        file.remove()?;
        session.report("signed out");
        Ok(Exit::Succeeded)
    }
}

pub(crate) async fn whoami(session: &mut Session<'_>) -> Result<Exit, Error> {
    let me = session.client()?.me().await?;
    session.show(&me, text)?;
    Ok(Exit::Succeeded)
}

fn text(me: &Me) -> String {
    let credential = match me.credential {
        CredentialKind::Token => "token",
        CredentialKind::Session => "session of",
        CredentialKind::Job => "job",
    };
    let projects = me.projects.as_ref().map(|projects| projects.join(", "));
    Fields::new()
        .add_some("user", me.user.as_ref())
        .add("roles", roles(me.administrator, &me.roles, ", "))
        .add("signed in with", format!("{credential} {}", me.name))
        .add("scopes", me.scopes.join(", "))
        .add("projects", projects.as_deref().unwrap_or("all"))
        .add_some("expires", me.expires_at.as_ref().map(time))
        .text()
}
