//! `everscan validate`: checks workflow files with the code the daemon uses.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use workflow::{Code, Diagnostic, Severity, TemplatePolicy};

use crate::error::Error;
use crate::exit::Exit;
use crate::format::Format;
use crate::reading::read_given;
use crate::session::Session;
use crate::{limits, workflow_files};

/// Where a repository keeps its workflows unless its source says otherwise.
const DEFAULT_FOLDER: &str = "workflows";

/// The end of the help text: here a file that cannot be read is told from one that is wrong.
const CODES: &str = "\
Exit codes:
  0  no errors
  1  errors; with --strict also warnings
  2  wrong usage, or a file cannot be read";

#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub(crate) struct Validate {
    /// Files, folders that are searched for *.yaml and *.yml, or - for standard input [default: workflows]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// What free text of a dispatcher is that becomes part of a script: a warning or an error
    #[arg(
        long,
        env = "SERVICE_SCRIPT_TEMPLATES",
        value_enum,
        value_name = "POLICY",
        default_value = "warn"
    )]
    script_templates: ScriptTemplates,
    /// Let warnings count as errors do
    #[arg(long, env = "SERVICE_STRICT")]
    strict: bool,
}

/// The words for a [`TemplatePolicy`].
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScriptTemplates {
    Warn,
    Deny,
}

impl From<ScriptTemplates> for TemplatePolicy {
    fn from(word: ScriptTemplates) -> Self {
        match word {
            ScriptTemplates::Warn => Self::Warn,
            ScriptTemplates::Deny => Self::Deny,
        }
    }
}

/// What was found in one file.
struct Checked {
    diagnostics: Vec<Diagnostic>,
    /// For excerpts; absent when the file could not be read.
    text: Option<String>,
}

/// How far a file is in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Valid,
    Warned,
    Invalid,
    Unreadable,
}

impl Checked {
    fn verdict(&self) -> Verdict {
        let worst = self.diagnostics.iter().map(|found| match found.severity {
            Severity::Error => Verdict::Invalid,
            Severity::Warning => Verdict::Warned,
        });
        match &self.text {
            Some(_) => worst.max().unwrap_or(Verdict::Valid),
            None => Verdict::Unreadable,
        }
    }
}

impl Validate {
    pub(crate) fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let files = files(&self.paths)?;
        let rivals = workflow_files::rivals(&files);
        let policy = self.script_templates.into();
        let checked: Vec<Checked> = files
            .iter()
            .map(|file| check(file, policy, rivals.get(file.as_path()).copied()))
            .collect();
        if session.format == Format::Table {
            let colour = session.terminal.is_colourful();
            for file in &checked {
                session.terminal.data(&excerpts(file, colour))?;
            }
        } else {
            let all: Vec<&Diagnostic> = checked.iter().flat_map(|file| &file.diagnostics).collect();
            session.show(&all, |_| String::new())?;
        }
        Ok(self.conclude(session, &checked))
    }

    /// Says how many files are in order, and whether that is all of them.
    fn conclude(&self, session: &mut Session<'_>, checked: &[Checked]) -> Exit {
        let tolerated = if self.strict {
            Verdict::Valid
        } else {
            Verdict::Warned
        };
        let verdicts = || checked.iter().map(Checked::verdict);
        let all = checked.len();
        let refused = verdicts().filter(|verdict| *verdict > tolerated).count();
        let noun = if all == 1 { "file" } else { "files" };
        session.terminal.say(&if refused == 0 {
            format!("{all} {noun} valid")
        } else {
            format!("{refused} of {all} {noun} invalid")
        });
        match verdicts().max() {
            Some(Verdict::Unreadable) => Exit::Usage,
            Some(worst) if worst > tolerated => Exit::Failed,
            Some(_) | None => Exit::Succeeded,
        }
    }
}

/// The files to check; none is a mistake.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    if paths.is_empty() && !Path::new(DEFAULT_FOLDER).is_dir() {
        return Err(nothing_in(format!(
            "there is no folder `{DEFAULT_FOLDER}` here, which is where workflow files are looked for"
        )));
    }
    let default = [PathBuf::from(DEFAULT_FOLDER)];
    let paths = if paths.is_empty() { &default } else { paths };
    let files = workflow_files::find(paths)?;
    if files.is_empty() {
        let searched: Vec<_> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let searched = searched.join(", ");
        return Err(nothing_in(format!(
            "there are no workflow files in {searched}"
        )));
    }
    Ok(files)
}

fn nothing_in(what: String) -> Error {
    Error::Usage {
        what,
        hint: "name files or folders: everscan validate PATH; in folders, workflow files end in .yaml or .yml",
    }
}

fn check(path: &Path, policy: TemplatePolicy, rival: Option<&Path>) -> Checked {
    let file = path.display().to_string();
    let text = match read_given(path, limits::WORKFLOW_FILE) {
        Ok(text) => text,
        Err(error) => {
            let message = error.with_cause();
            let unreadable = Diagnostic::of_file(&file, Code::UnreadableFile, message, None);
            return Checked {
                diagnostics: vec![unreadable],
                text: None,
            };
        }
    };
    let mut diagnostics = match workflow::parse(&file, &text, policy) {
        Ok(parsed) => parsed.warnings,
        Err(diagnostics) => diagnostics,
    };
    diagnostics.extend(rival.map(|rival| same_name(&file, rival)));
    Checked {
        diagnostics,
        text: Some(text),
    }
}

fn same_name(file: &str, rival: &Path) -> Diagnostic {
    let message = format!("{} is the same workflow", rival.display());
    let hint = "a workflow is named by its path without the extension; rename one".to_owned();
    Diagnostic::of_file(file, Code::DuplicateName, message, Some(hint))
}

fn excerpts(checked: &Checked, colour: bool) -> String {
    match &checked.text {
        Some(text) => workflow::render(&checked.diagnostics, text, colour),
        // There is nothing to show of it.
        None => checked
            .diagnostics
            .iter()
            .map(|found| format!("error: {}\n", found.message))
            .collect(),
    }
}
