//! A registered runner on disk: one file, `~/.everscan/runner/<name>/config.json`, readable only by its user. It is always
//! replaced completely, so after a crash it is either the old or the new file.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::limits;
use crate::workdir;

const FORMAT: u32 = 1;

const FILE: &str = "config.json";

/// A runner as it was registered.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    pub format: u32,
    pub name: String,
    pub runner_id: Uuid,
    /// The daemon's address without `/v0`.
    pub url: String,
    /// The certificates to trust, in place of the machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Whether the token may cross the network in plain text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure_http: bool,
    pub token: String,
    pub workdir: PathBuf,
    pub labels: Vec<String>,
    /// Whether it takes only jobs of scans whose `runs_on` names one of its labels.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
    pub capacity: u32,
}

impl fmt::Debug for Configuration {
    /// Leaves out the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configuration")
            .field("name", &self.name)
            .field("runner_id", &self.runner_id)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    #[error("runner {name} is not configured on this machine")]
    Missing { name: String, others: Vec<String> },
    #[error(
        "{name:?} cannot be the name of a runner: letters, digits, dots, dashes and underscores, at most {limit}",
        limit = limits::NAME_BYTES
    )]
    Name { name: String },
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is not a runner configuration of this version", path.display())]
    Content {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("{} has format {format}; this version knows {FORMAT}", path.display())]
    Format { path: PathBuf, format: u32 },
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// The folder of the runner `name` below the user's home.
pub fn folder_of(home: &Path, name: &str) -> Result<PathBuf, ConfigurationError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_name = (1..=limits::NAME_BYTES).contains(&name.len())
        && name.bytes().all(is_plain)
        && !name.starts_with('.');
    if is_name {
        Ok(runners(home).join(name))
    } else {
        Err(ConfigurationError::Name {
            name: name.to_owned(),
        })
    }
}

fn runners(home: &Path) -> PathBuf {
    home.join(".everscan").join("runner")
}

impl Configuration {
    pub fn new(registered: &wire::RegisteredRunner, url: String, asked: RegisteredAs) -> Self {
        Self {
            format: FORMAT,
            name: asked.name,
            runner_id: registered.id,
            url,
            ca_file: asked.ca_file,
            insecure_http: asked.insecure_http,
            token: registered.token.clone(),
            workdir: asked.workdir,
            labels: asked.labels,
            exclusive: asked.exclusive,
            capacity: asked.capacity,
        }
    }

    /// Reads the configuration of the runner called `name`.
    pub fn load(home: &Path, name: &str) -> Result<Self, ConfigurationError> {
        let path = folder_of(home, name)?.join(FILE);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ConfigurationError::Missing {
                    name: name.to_owned(),
                    others: configured(home),
                });
            }
            Err(source) => return Err(ConfigurationError::Read { path, source }),
        };
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let content = |source| ConfigurationError::Content {
            path: path.clone(),
            source,
        };
        let Head { format } = serde_json::from_slice(&text).map_err(content)?;
        if format != FORMAT {
            return Err(ConfigurationError::Format { path, format });
        }
        serde_json::from_slice(&text).map_err(content)
    }

    /// Writes the file into the runner's folder. It is durable when this returns.
    /// After an error the old file is unchanged.
    pub fn save(&self, folder: &Path) -> Result<(), ConfigurationError> {
        let path = folder.join(FILE);
        let written = || -> io::Result<()> {
            workdir::make_private_folder(folder)?;
            let mut file = tempfile::Builder::new().prefix(FILE).tempfile_in(folder)?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            File::open(folder)?.sync_all()
        };
        written().map_err(|source| ConfigurationError::Write { path, source })
    }
}

/// What a runner requests at its registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredAs {
    pub name: String,
    /// The certificates to trust for `https`, in place of the machine's.
    pub ca_file: Option<PathBuf>,
    /// Whether the token may cross the network in plain text.
    pub insecure_http: bool,
    pub workdir: PathBuf,
    pub labels: Vec<String>,
    /// Whether it takes only jobs of scans whose `runs_on` names one of its labels.
    pub exclusive: bool,
    pub capacity: u32,
}

pub(crate) fn configured(home: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(runners(home)) else {
        return Vec::new();
    };
    let mut names: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.path().join(FILE).exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use tempfile::TempDir;

    fn configuration() -> Configuration {
        let registered = wire::RegisteredRunner {
            id: Uuid::from_u128(1),
            token: "secret".to_owned(),
            expires_at: chrono::DateTime::UNIX_EPOCH,
            projects: None,
            labels: Vec::new(),
        };
        let asked = RegisteredAs {
            ca_file: None,
            insecure_http: false,
            name: "one".to_owned(),
            workdir: PathBuf::from("/work"),
            labels: vec!["linux".to_owned()],
            exclusive: true,
            capacity: 2,
        };
        Configuration::new(&registered, "http://d".to_owned(), asked)
    }

    #[test]
    fn what_is_saved_is_loaded_and_private() {
        let home = TempDir::new().unwrap();
        let folder = folder_of(home.path(), "one").unwrap();
        configuration().save(&folder).unwrap();
        let renewed = Configuration {
            token: "renewed".to_owned(),
            ..configuration()
        };
        renewed.save(&folder).unwrap();
        assert_eq!(Configuration::load(home.path(), "one").unwrap(), renewed);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder.join(FILE)), 0o600);
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        assert!(!format!("{renewed:?}").contains("renewed"));
    }

    #[test]
    fn a_missing_one_names_the_others() {
        let home = TempDir::new().unwrap();
        configuration()
            .save(&folder_of(home.path(), "one").unwrap())
            .unwrap();
        let error = Configuration::load(home.path(), "two").unwrap_err();
        assert!(matches!(error, ConfigurationError::Missing { others, .. } if others == ["one"]));
    }

    #[test]
    fn names_are_folder_names() {
        let home = Path::new("/home/u");
        for name in ["", ".", "..", ".hidden", "a/b", "a b", &"x".repeat(65)] {
            assert!(folder_of(home, name).is_err(), "{name:?}");
        }
        assert_eq!(
            folder_of(home, "host-1.example").unwrap(),
            Path::new("/home/u/.everscan/runner/host-1.example")
        );
    }

    #[test]
    fn a_newer_format_is_refused_by_number() {
        let home = TempDir::new().unwrap();
        let folder = folder_of(home.path(), "one").unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(FILE), r#"{"format":2,"new":true}"#).unwrap();
        let error = Configuration::load(home.path(), "one").unwrap_err();
        assert!(matches!(
            error,
            ConfigurationError::Format { format: 2, .. }
        ));
        std::fs::write(folder.join(FILE), r#"{"format":1"#).unwrap();
        let error = Configuration::load(home.path(), "one").unwrap_err();
        assert!(matches!(error, ConfigurationError::Content { .. }));
    }
}
