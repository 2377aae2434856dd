//! `everscan workflow diff`: how two files differ in meaning.

use std::path::{Path, PathBuf};

use clap::Args;
use workflow::{Diagnostic, Difference, TemplatePolicy, Workflow};

use crate::error::Error;
use crate::exit::Exit;
use crate::limits;
use crate::reading::read_given;
use crate::session::Session;
use crate::untrusted::clean;

/// The end of the help text. This command tells unreadable files from invalid ones.
const CODES: &str = "\
Exit codes:
  0  compared, whether they differ or not
  1  a file has errors
  2  wrong usage, or a file cannot be read";

#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub(crate) struct Diff {
    /// File as it was; - is standard input
    #[arg(value_name = "A")]
    before: PathBuf,
    /// File as it is now; - is standard input
    #[arg(value_name = "B")]
    after: PathBuf,
}

impl Diff {
    pub(crate) fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let before = read(&self.before)?;
        let after = read(&self.after)?;
        let difference = workflow::diff(&before, &after);
        session.show(&difference, text)?;
        if difference.is_empty() {
            session.terminal.say("no difference");
        }
        Ok(Exit::Succeeded)
    }
}

/// Reads a file, which must be valid: an invalid one has no meaning to compare.
fn read(path: &Path) -> Result<Workflow, Error> {
    let file = path.display().to_string();
    let text = match read_given(path, limits::WORKFLOW_FILE) {
        Err(Error::FileTooLong { .. }) => {
            let too_large = Diagnostic::too_large(&file);
            return Err(Error::Refused {
                excerpts: workflow::render(&[too_large], "", false),
            });
        }
        read => read.map_err(|error| Error::Unreadable(Box::new(error)))?,
    };
    workflow::parse(&file, &text, TemplatePolicy::Warn)
        .map(|parsed| parsed.workflow)
        .map_err(|diagnostics| Error::Refused {
            excerpts: workflow::render(&diagnostics, &text, false),
        })
}

fn text(difference: &Difference) -> String {
    difference
        .to_string()
        .lines()
        .map(|line| clean(line) + "\n")
        .collect()
}
