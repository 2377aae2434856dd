//! The address of the daemon, and the token.

use std::path::{Path, PathBuf};

use client::{Client, Secret};

use crate::error::Error;
use crate::limits;
use crate::reading::read_text;

/// The origin of the token. The token is never an argument, because other users of the machine can read arguments.
#[derive(Debug)]
pub(crate) enum TokenSource {
    /// Requests are sent without a token.
    None,
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
        let url = self.url.as_deref().ok_or_else(|| Error::Usage {
            what: "no daemon is named".to_owned(),
            hint: "set SERVICE_URL or give --url, as in https://everscan.example.org",
        })?;
        let token = match &self.token {
            TokenSource::None => None,
            TokenSource::Given(token) => Some(token.clone()),
            TokenSource::File(path) => Some(read_token(path)?),
        };
        let is_guarded = token.is_some() && !self.insecure_http;
        let client = Client::trusting(url, token, self.ca_file.as_deref())?;
        Ok(if is_guarded {
            client.refuse_plain_http()?
        } else {
            client
        })
    }
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
