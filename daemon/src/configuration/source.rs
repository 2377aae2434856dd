//! The sources of the configuration file.

use std::path::{Component, Path, PathBuf};

use model::SourceName;
use reconciler::{Location, LocationError, Reference, SourceConfig};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::access::FileAccess;
use super::{ConfigurationError, INTERVAL};
use crate::limits::SHORTEST_INTERVAL;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileSource {
    name: String,
    url: String,
    #[serde(rename = "ref")]
    reference: Option<String>,
    path: Option<String>,
    interval: Option<String>,
    #[serde(default, deserialize_with = "token_file")]
    token_file: Option<PathBuf>,
    #[serde(default, deserialize_with = "token_command")]
    token_command: Option<Vec<String>>,
    username: Option<String>,
    ca_file: Option<PathBuf>,
}

/// A key without a value is a mistake: without the token, the daemon might follow another repository.
fn token_file<'de, D: Deserializer<'de>>(value: D) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(value);
    path.map(Some)
        .map_err(|_| D::Error::custom("`token_file` must be the path of a file"))
}

fn token_command<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Vec<String>>, D::Error> {
    let words = Vec::deserialize(value);
    words.map(Some).map_err(|_| {
        D::Error::custom("`token_command` must be a list of words, as in `[cat, /etc/token]`")
    })
}

impl FileSource {
    /// Reads `NAME=URL`. A relative path is relative to the working directory.
    pub(super) fn of_flag(text: String) -> Result<SourceConfig, ConfigurationError> {
        let Some((name, url)) = text.split_once('=') else {
            return Err(ConfigurationError::SourceFlag { text });
        };
        let source = Self {
            name: name.to_owned(),
            url: url.to_owned(),
            ..Self::default()
        };
        source.check(Path::new(""))
    }

    /// Checks a source. A relative path of a repository is relative to the configuration file.
    pub(super) fn check(self, base: &Path) -> Result<SourceConfig, ConfigurationError> {
        let Self {
            name,
            url,
            reference,
            path,
            interval,
            token_file,
            token_command,
            username,
            ca_file,
        } = self;
        let fail = |problem: String| ConfigurationError::Source {
            name: name.clone(),
            problem,
        };
        let parsed_name: SourceName = name
            .parse()
            .map_err(|error: model::SourceNameError| fail(error.to_string()))?;
        let location = match Location::parse(&url).map_err(|error| fail(with_hint(&error)))? {
            Location::Local(path) => {
                let path = base.join(path);
                let absolute = std::path::absolute(&path)
                    .map_err(|error| fail(format!("{}: {error}", path.display())))?;
                Location::Local(absolute)
            }
            remote @ Location::Remote(_) => remote,
        };
        let access = FileAccess {
            token_file,
            token_command,
            username,
            ca_file,
        };
        let access = access.check(&location, base).map_err(fail)?;
        let reference = reference
            .map(|text| Reference::parse(&text))
            .transpose()
            .map_err(|error| fail(error.to_string()))?;
        let interval = match interval {
            None => INTERVAL,
            Some(text) => {
                let interval = workflow::parse_duration(&text)
                    .map_err(|error| fail(format!("interval: {error}")))?;
                interval.to_std().unwrap_or_default()
            }
        };
        if interval < SHORTEST_INTERVAL {
            return Err(fail("interval: must be at least 1s".to_owned()));
        }
        let folder = folder(path.as_deref().unwrap_or("workflows")).map_err(fail)?;
        Ok(SourceConfig {
            name: parsed_name,
            location,
            access,
            reference,
            folder,
            interval,
        })
    }
}

/// The folder inside a repository, as a path from its top. The top itself is empty.
pub(super) fn folder(text: &str) -> Result<String, String> {
    let mut names = Vec::new();
    for component in Path::new(text).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => names.push(name.to_string_lossy()),
            Component::Prefix(_) | Component::RootDir | Component::ParentDir => {
                return Err(format!(
                    "path: `{text}` is not a folder inside a repository\n\
                     hint: write it from the top of the repository, without `..` and without `/` at the start"
                ));
            }
        }
    }
    Ok(names.join("/"))
}

fn with_hint(error: &LocationError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}
