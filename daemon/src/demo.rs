//! The demonstration: the whole loop in a temporary folder, with the programs and commands that users run.
//!
//! Nothing is simulated. A Git repository is made and pushed to, the daemon, the runner and the command line are
//! separate processes of this same file, which end with it, and any step that does not happen ends the demonstration with its reason.

mod error;
mod interruption;
mod processes;
mod stage;
mod story;
mod terminal;

use stage::Stage;

use crate::arguments::DemoOptions;

pub(crate) use error::DemoError;

/// Shows it all; with `--keep` leaves it running until Ctrl-C. A signal ends it at any time, with all it has started and
/// made.
pub(crate) fn demo(options: &DemoOptions) -> Result<(), DemoError> {
    story::tell(&mut Stage::set()?, options.keep)
}
