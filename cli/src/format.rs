//! The output forms.

use std::str::FromStr;

use serde::Serialize;

use crate::error::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// The daemon's own JSON.
    Json,
    /// The same as YAML.
    Yaml,
}

impl FromStr for Format {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "table" | "text" => Ok(Self::Table),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            _ => Err("the forms are text, table, json and yaml; a file is named with -o or --dst"),
        }
    }
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
                let text = serde_json::to_string_pretty(value).map_err(failed("JSON"))?;
                Ok(text + "\n")
            }
            Self::Yaml => serde_yaml::to_string(value).map_err(failed("YAML")),
        }
    }

    /// Shows one value of a stream on its own line. Returns `None` for the form for people, which the caller writes.
    pub(crate) fn item<T: Serialize>(self, value: &T) -> Result<Option<String>, Error> {
        let json = || serde_json::to_string(value).map_err(failed("JSON"));
        match self {
            Self::Table => Ok(None),
            Self::Json => json().map(Some),
            // A sequence of items in JSON form is one YAML document, even while it grows.
            Self::Yaml => Ok(Some(format!("- {}", json()?))),
        }
    }
}

fn failed<E: std::error::Error + Send + Sync + 'static>(
    format: &'static str,
) -> impl FnOnce(E) -> Error {
    move |source| Error::Render {
        format,
        source: Box::new(source),
    }
}
