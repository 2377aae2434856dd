//! The forms in which answers are shown.

use clap::ValueEnum;
use serde::Serialize;

use crate::error::Error;

/// How data is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // For people.
    #[value(alias = "text")]
    Table,
    // The daemon's own JSON.
    Json,
    // The same as YAML.
    Yaml,
}

impl Format {
    /// Shows a value: in the programs' forms whole, for people as `table` makes it.
    pub(crate) fn show<T: Serialize>(
        self,
        value: &T,
        table: impl FnOnce(&T) -> String,
    ) -> Result<String, Error> {
        match self {
            Self::Table => Ok(table(value)),
            Self::Json => {
                let mut text =
                    serde_json::to_string_pretty(value).map_err(|source| Error::Render {
                        format: "JSON",
                        source: Box::new(source),
                    })?;
                text.push('\n');
                Ok(text)
            }
            Self::Yaml => serde_yaml::to_string(value).map_err(|source| Error::Render {
                format: "YAML",
                source: Box::new(source),
            }),
        }
    }

    /// One of many values of a stream on a line of its own; `None` in the form for people, which is the caller's.
    pub(crate) fn item<T: Serialize>(self, value: &T) -> Result<Option<String>, Error> {
        let json = || {
            serde_json::to_string(value).map_err(|source| Error::Render {
                format: "JSON",
                source: Box::new(source),
            })
        };
        match self {
            Self::Table => Ok(None),
            Self::Json => json().map(Some),
            // A sequence whose items are written in YAML's JSON form stays one document, however long it grows.
            Self::Yaml => Ok(Some(format!("- {}", json()?))),
        }
    }
}
