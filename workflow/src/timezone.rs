//! Time zones by their IANA names.

use thiserror::Error;

use crate::limits::SHOWN_CHARS;
use crate::suggestion::did_you_mean;

pub use chrono_tz::Tz as Timezone;

/// No zone has that name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no time zone `{name}`")]
pub struct TimezoneError {
    name: String,
}

impl TimezoneError {
    /// A hint with a similar name. Compares with all known zones.
    pub fn hint(&self) -> String {
        let names = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
        did_you_mean(&self.name, names).unwrap_or_else(|| {
            "write a name of the IANA database, such as `Europe/Berlin`".to_owned()
        })
    }
}

/// Finds a zone by its name.
///
/// # Errors
/// No zone has that name.
pub fn parse_timezone(name: &str) -> Result<Timezone, TimezoneError> {
    name.parse().map_err(|_| TimezoneError {
        name: name.chars().take(SHOWN_CHARS).collect(),
    })
}
