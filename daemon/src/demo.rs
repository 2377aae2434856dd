//! The demonstration: the whole loop in a temporary folder, with the programs and commands that users run.
//!
//! Nothing is simulated. A Git repository is made and pushed to, the daemon, the runner and the command line are
//! separate processes of this same file, which end with it, and any step that does not happen ends the demonstration with its reason.

mod interruption;
mod processes;
mod stage;
mod story;
mod terminal;

use std::path::PathBuf;
use std::process::ExitStatus;

use thiserror::Error;

use crate::arguments::DemoOptions;
use crate::demo::stage::Stage;
use crate::run::StopSignal;

/// Why the demonstration did not come to its end.
#[derive(Debug, Error)]
pub(crate) enum DemoError {
    #[error("cannot make {}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot start `{program}`{}", if program == "git" { "; is Git installed?" } else { "" })]
    Spawn {
        program: String,
        source: std::io::Error,
    },
    #[error("`{command}` ended with {status}: {said}")]
    Failed {
        command: String,
        status: ExitStatus,
        said: String,
    },
    #[error("{program} did not say {wanted}")]
    Silent {
        program: &'static str,
        wanted: &'static str,
    },
    #[error("{0}")]
    Unexpected(String),
    #[error("stopped by a signal")]
    Stopped(StopSignal),
    #[error("cannot wait for signals")]
    Signals(#[source] std::io::Error),
    #[error("cannot write to the terminal")]
    Terminal(#[source] std::io::Error),
}

/// Shows it all; with `--keep` leaves it running until Ctrl-C. A signal ends it at any time, with all it has started and
/// made.
pub(crate) fn demo(options: &DemoOptions) -> Result<(), DemoError> {
    story::tell(&mut Stage::set()?, options.keep)
}
