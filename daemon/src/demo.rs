//! The demonstration: all features in a temporary folder, with the programs and commands of users.
//!
//! Nothing is simulated. The demonstration pushes to a Git repository and runs the daemon, the runner and the command as separate
//! processes of this same file. They end with the demonstration. A step that fails ends the demonstration with the reason.

mod error;
mod interruption;
mod processes;
mod stage;
mod story;
mod terminal;

use stage::Stage;

use crate::arguments::DemoOptions;

pub(crate) use error::DemoError;

/// Runs the demonstration. With `--keep` everything keeps running until Ctrl-C. A signal ends it at any time and
/// removes everything it started or made.
pub(crate) fn demo(options: &DemoOptions) -> Result<(), DemoError> {
    story::run(&mut Stage::set()?, options.keep)
}
