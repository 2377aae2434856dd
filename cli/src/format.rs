//! The output forms.

use clap::ValueEnum;
use serde::Serialize;

use crate::error::Error;

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
    /// Shows a value. `table` makes the form for people; the others show the whole value.
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

    /// Shows one value of a stream on its own line. Returns `None` for the form for people, which the caller makes.
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
            // A sequence whose items are in YAML's JSON form is one document, however long it grows.
            Self::Yaml => Ok(Some(format!("- {}", json()?))),
        }
    }
}
