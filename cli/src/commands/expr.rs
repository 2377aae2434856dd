//! `everscan expr`.

mod eval;

use clap::Subcommand;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Evaluate an expression on values from a file
    Eval(eval::Eval),
}

impl Command {
    pub(crate) fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Eval(command) => command.run(session),
        }
    }
}
