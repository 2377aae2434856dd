//! The address of the daemon, and the credential.

use std::path::{Path, PathBuf};

use client::{Client, Secret};

use crate::error::Error;
use crate::limits;
use crate::login::LoginFile;
use crate::reading::read_text;

/// The origin of the token. The token is never an argument, because other users of the machine can read arguments.
#[derive(Debug)]
pub(crate) enum TokenSource {
    /// The saved login of the daemon. Requests are sent without a token if there is none.
    Login,
    Given(Secret),
    File(PathBuf),
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) url: Option<String>,
    pub(crate) token: TokenSource,
    /// The certificates to trust, in place of the machine's.
    pub(crate) ca_file: Option<PathBuf>,
    /// Whether the token may cross the network in plain text.
    pub(crate) insecure_http: bool,
}

impl Connection {
    pub(crate) fn client(&self) -> Result<Client, Error> {
        let client = self.bare()?;
        let token = match &self.token {
            TokenSource::Login => login(&client)?,
            TokenSource::Given(token) => Some(token.clone()),
            TokenSource::File(path) => Some(read_token(path)?),
        };
        match token {
            Some(token) => Ok(self.guarded(client)?.with_token(token)),
            None => Ok(client),
        }
    }

    /// A client without a token, over a connection that may carry one.
    pub(crate) fn anonymous(&self) -> Result<Client, Error> {
        self.guarded(self.bare()?)
    }

    /// What to do when the daemon does not accept the credential.
    pub(crate) fn hint(&self) -> &'static str {
        match &self.token {
            // A step must not be led to the administrator's token.
            _ if is_step() => {
                "a step has the token of its job in SERVICE_TOKEN, until the job ends, and after a cancel for two minutes at \
                 most; `env` of the workflow may have replaced it, and an old runner gives none: tell its operator"
            }
            TokenSource::Login
                if self
                    .bare()
                    .is_ok_and(|client| matches!(login(&client), Ok(Some(_)))) =>
            {
                "the saved login has ended; sign in again with `everscan login`"
            }
            TokenSource::Login => {
                "sign in with `everscan login`, or set SERVICE_TOKEN, or name a file with SERVICE_TOKEN_FILE or --token-file; \
                 the daemon's first token is in `initial-admin-token` in its state folder"
            }
            TokenSource::Given(_) | TokenSource::File(_) => {
                "the token has ended, or is of another daemon; set another one, or unset SERVICE_TOKEN and SERVICE_TOKEN_FILE \
                 and sign in with `everscan login`"
            }
        }
    }

    fn bare(&self) -> Result<Client, Error> {
        let url = self.url.as_deref().ok_or_else(|| Error::Usage {
            what: "no daemon is named".to_owned(),
            hint: "set SERVICE_URL or give --url, as in https://everscan.example.org",
        })?;
        Ok(Client::trusting(url, None, self.ca_file.as_deref())?)
    }

    fn guarded(&self, client: Client) -> Result<Client, Error> {
        if self.insecure_http {
            Ok(client)
        } else {
            Ok(client.refuse_plain_http()?)
        }
    }
}

/// The secret of the saved login. A step has none: it does not act for the person whose machine it runs on.
fn login(client: &Client) -> Result<Option<Secret>, Error> {
    match LoginFile::of(client) {
        Ok(file) if !is_step() => Ok(file.read()?.map(|login| login.secret())),
        // Without a home there is no login.
        Ok(_) | Err(_) => Ok(None),
    }
}

fn is_step() -> bool {
    std::env::var_os("SERVICE_JOB_ID").is_some()
}

fn read_token(path: &Path) -> Result<Secret, Error> {
    let text =
        read_text(path, limits::TOKEN_FILE).map_err(|error| Error::Unreadable(Box::new(error)))?;
    match text.trim() {
        "" => Err(Error::EmptyToken {
            path: path.to_owned(),
        }),
        token => Ok(Secret::new(token)),
    }
}
