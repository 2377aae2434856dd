//! The logins that `everscan login` saves: one file for each daemon, which only its owner can read.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use client::{Client, Secret};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use uuid::Uuid;

use crate::error::Error;
use crate::limits;
use crate::reading::read_text;

/// A session of this device.
#[derive(Serialize, Deserialize)]
pub(crate) struct Login {
    /// The address of the daemon, for people who look into the file.
    url: String,
    pub(crate) session: Uuid,
    secret: String,
}

impl Login {
    pub(crate) fn secret(&self) -> Secret {
        Secret::new(self.secret.as_str())
    }
}

/// Where the login of one daemon is saved.
pub(crate) struct LoginFile {
    url: String,
    folder: PathBuf,
    path: PathBuf,
}

impl LoginFile {
    /// The file for the daemon of a client.
    pub(crate) fn of(client: &Client) -> Result<Self, Error> {
        let folder = |name: &str| {
            let folder = PathBuf::from(std::env::var_os(name)?);
            folder.is_absolute().then_some(folder)
        };
        let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
        let config = config.ok_or_else(|| Error::Usage {
            what: "there is no folder for logins".to_owned(),
            hint: "set HOME, or XDG_CONFIG_HOME, to an absolute path",
        })?;
        let folder = config.join("everscan/logins");
        let url = client.url_of("");
        let name = workflow::hex(&Sha256::digest(&url));
        let path = folder.join(format!("{name}.json"));
        Ok(Self { url, folder, path })
    }

    pub(crate) fn read(&self) -> Result<Option<Login>, Error> {
        let text = match read_text(&self.path, limits::TOKEN_FILE) {
            Err(Error::Read { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            read => read.map_err(|error| Error::Unreadable(Box::new(error)))?,
        };
        let login = serde_json::from_str(&text).map_err(|source| Error::BadLogin {
            path: self.path.clone(),
            source,
        })?;
        Ok(Some(login))
    }

    /// Saves a login in place of an earlier one.
    pub(crate) fn save(&self, session: Uuid, secret: &Secret) -> Result<(), Error> {
        let login = Login {
            url: self.url.clone(),
            session,
            secret: secret.expose().to_owned(),
        };
        let write = || {
            let mut folder = DirBuilder::new();
            folder.recursive(true).mode(0o700).create(&self.folder)?;
            // It has the mode 0600.
            let mut file = NamedTempFile::new_in(&self.folder)?;
            file.write_all(&serde_json::to_vec_pretty(&login)?)?;
            file.as_file().sync_all()?;
            file.persist(&self.path).map_err(io::Error::from)
        };
        write().map(drop).map_err(Error::writing(&self.path))
    }

    pub(crate) fn remove(&self) -> Result<(), Error> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::writing(&self.path)(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
