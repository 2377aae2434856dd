//! `everscan schema`: what editors need to know of workflow files.

use clap::Args;

use crate::error::Error;
use crate::exit::Exit;
use crate::format::Format;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Schema {}

impl Schema {
    pub(crate) fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        // A schema is JSON for people too.
        let format = match session.format {
            Format::Table | Format::Json => Format::Json,
            Format::Yaml => Format::Yaml,
        };
        let schema = format.show(&workflow::json_schema(), |_| String::new())?;
        session.terminal.data(&schema)?;
        Ok(Exit::Succeeded)
    }
}
