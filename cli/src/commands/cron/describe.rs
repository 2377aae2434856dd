//! `everscan cron describe`: a schedule in words.

use clap::Args;
use serde::Serialize;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Minute, hour, day of month, month and day of week, as one argument: '5 */2 * * *'
    #[arg(value_name = "EXPR")]
    schedule: String,
}

/// A schedule with its meaning.
#[derive(Debug, Serialize)]
struct Described {
    schedule: String,
    description: String,
}

impl Describe {
    pub(crate) fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let cron = super::read(&self.schedule)?;
        let described = Described {
            schedule: cron.source().to_owned(),
            description: cron.describe(),
        };
        session.show(&described, |described| {
            format!("{}\n", described.description)
        })?;
        Ok(Exit::Succeeded)
    }
}
