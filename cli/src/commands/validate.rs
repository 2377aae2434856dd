//! `everscan validate`: checks workflow files with the code of the daemon.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use workflow::{Code, Diagnostic, SETTINGS_FILE, Severity, TemplatePolicy};

use crate::error::Error;
use crate::exit::Exit;
use crate::limits;
use crate::reading::read_given;
use crate::session::Session;
use crate::workflow_files::{self, Kind};

const DEFAULT_FOLDER: &str = "workflows";

/// The end of the help text. This command has different codes for unreadable and invalid files.
const CODES: &str = "\
Exit codes:
  0  no errors
  1  errors; with --strict also warnings
  2  wrong usage, or a file cannot be read";

#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub(crate) struct Validate {
    /// Files, folders that are searched for *.yaml and *.yml, or - for standard input; a symbolic link is followed if it is named
    /// directly, and refused inside a folder, as in the daemon [default: workflows and everscan.yaml]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Treat free text from a dispatcher in a script as a warning or as an error
    #[arg(
        long,
        env = "SERVICE_SCRIPT_TEMPLATES",
        value_enum,
        value_name = "POLICY",
        default_value = "warn"
    )]
    script_templates: ScriptTemplates,
    /// Fail even if there are only warnings
    #[arg(long, env = "SERVICE_STRICT")]
    strict: bool,
}

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

struct Checked {
    diagnostics: Vec<Diagnostic>,
    /// For excerpts; empty if the file was not read.
    text: String,
}

/// The state of a file, from good to bad.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Valid,
    Warned,
    Invalid,
    Unreadable,
}

impl Checked {
    fn verdict(&self) -> Verdict {
        let verdicts = self.diagnostics.iter().map(|found| match found.severity {
            Severity::Error if found.code == Code::UnreadableFile => Verdict::Unreadable,
            Severity::Error => Verdict::Invalid,
            Severity::Warning => Verdict::Warned,
        });
        verdicts.max().unwrap_or(Verdict::Valid)
    }
}

impl Validate {
    pub(crate) fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let default = [PathBuf::from(DEFAULT_FOLDER)];
        let paths = if self.paths.is_empty() {
            &default
        } else {
            self.paths.as_slice()
        };
        let folder = Path::new(DEFAULT_FOLDER);
        if self.paths.is_empty() && folder.is_symlink() {
            return Err(Error::Usage {
                what: format!(
                    "`{DEFAULT_FOLDER}` is a symbolic link, which the daemon does not follow"
                ),
                hint: "name the folder itself as the source's `path`, and here: everscan validate PATH",
            });
        }
        let files = if self.paths.is_empty() && !folder.is_dir() {
            BTreeMap::new()
        } else {
            workflow_files::find(paths)?
        };
        let rivals = workflow_files::rivals(files.keys());
        let policy = self.script_templates.into();
        let checked: Vec<Checked> = files
            .iter()
            .map(|(file, kind)| check(file, *kind, policy, rivals.get(file.as_path()).copied()))
            .collect();
        let colour = session.terminal.is_colourful();
        let beside = self.paths.is_empty().then(|| SETTINGS_FILE.into());
        let around: Vec<PathBuf> = paths.iter().cloned().chain(beside).collect();
        let settings = workflow_files::settings(&around).into_iter();
        let settings = settings.map(|(path, kind)| {
            check_with(&path, kind, |file, text| {
                workflow::notify::parse_project(file, text).1
            })
        });
        let found: Vec<Checked> = settings.chain(checked).collect();
        let all: Vec<&Diagnostic> = found.iter().flat_map(|file| &file.diagnostics).collect();
        // Programs get the list even if there was no file to check.
        session.show(&all, |_| excerpts(&found, colour))?;
        if files.is_empty() && !paths.iter().any(|path| workflow_files::is_settings(path)) {
            return Err(nothing_in(paths));
        }
        Ok(self.conclude(session, &found))
    }

    /// Reports how many files are valid, and chooses the exit code.
    fn conclude(&self, session: &mut Session<'_>, checked: &[Checked]) -> Exit {
        let verdicts = || checked.iter().map(Checked::verdict);
        let invalid = verdicts()
            .filter(|verdict| match verdict {
                Verdict::Valid | Verdict::Warned => false,
                Verdict::Invalid | Verdict::Unreadable => true,
            })
            .count();
        let warnings = checked
            .iter()
            .flat_map(|file| &file.diagnostics)
            .filter(|found| found.severity == Severity::Warning)
            .count();
        let plural = |count, noun: &str| match count {
            1 => format!("1 {noun}"),
            count => format!("{count} {noun}s"),
        };
        let files = plural(checked.len(), "file");
        session.report(&if invalid > 0 {
            format!("{invalid} of {files} invalid")
        } else if self.strict && warnings > 0 {
            let warnings = plural(warnings, "warning");
            format!("{files} valid, with {warnings}; --strict allows none")
        } else {
            format!("{files} valid")
        });
        match verdicts().max() {
            Some(Verdict::Unreadable) => Exit::Usage,
            Some(Verdict::Invalid) => Exit::Failed,
            Some(Verdict::Warned) if self.strict => Exit::Failed,
            Some(Verdict::Valid | Verdict::Warned) | None => Exit::Succeeded,
        }
    }
}

fn nothing_in(paths: &[PathBuf]) -> Error {
    let searched: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let searched = searched.join(", ");
    let what = if paths.iter().any(|path| workflow_files::is_folder(path)) {
        format!("there are no workflow files in {searched}")
    } else {
        format!("there is no folder `{searched}` here; workflow files are searched there")
    };
    Error::Usage {
        what,
        hint: "name files or folders: everscan validate PATH; in folders, workflow files end in .yaml or .yml",
    }
}

fn check(path: &Path, kind: Kind, policy: TemplatePolicy, rival: Option<&Path>) -> Checked {
    let mut checked = check_with(path, kind, |file, text| {
        match workflow::parse(file, text, policy) {
            Ok(parsed) => parsed.warnings,
            Err(diagnostics) => diagnostics,
        }
    });
    let file = path.display().to_string();
    checked
        .diagnostics
        .extend(rival.map(|rival| same_name(&file, rival)));
    checked
}

fn check_with(path: &Path, kind: Kind, parse: impl Fn(&str, &str) -> Vec<Diagnostic>) -> Checked {
    let file = path.display().to_string();
    match read(path, &file, kind) {
        Ok(text) => Checked {
            diagnostics: parse(&file, &text),
            text,
        },
        Err((unread, text)) => Checked {
            diagnostics: vec![unread],
            text,
        },
    }
}

/// Reads the text at `path`, which messages call `file`. If it fails, returns the problem and the text that can still be shown.
fn read(path: &Path, file: &str, kind: Kind) -> Result<String, (Diagnostic, String)> {
    let unseen = |diagnostic| (diagnostic, String::new());
    let unreadable = |message| Diagnostic::of_file(file, Code::UnreadableFile, message, None);
    match kind {
        Kind::Link => Err(unseen(Diagnostic::symbolic_link(file))),
        Kind::Misnamed => Err(unseen(Diagnostic::not_utf8_name(file))),
        Kind::Special => {
            let hint = "name a file, or `-` for standard input".to_owned();
            Err(unseen(Diagnostic {
                hint: Some(hint),
                ..unreadable("this is a pipe, a socket or a device, and no file".to_owned())
            }))
        }
        Kind::File => read_given(path, limits::WORKFLOW_FILE).map_err(|error| match error {
            Error::FileTooLong { .. } => unseen(Diagnostic::too_large(file)),
            Error::NotText { shown, source, .. } => {
                (Diagnostic::not_utf8_text(file, source), shown)
            }
            error => unseen(unreadable(error.with_cause())),
        }),
    }
}

fn same_name(file: &str, rival: &Path) -> Diagnostic {
    let message = format!("{} is the same workflow", rival.display());
    let hint = "a workflow is named by its path without the extension; rename one".to_owned();
    Diagnostic::of_file(file, Code::DuplicateName, message, Some(hint))
}

fn excerpts(checked: &[Checked], colour: bool) -> String {
    let shown: Vec<String> = checked
        .iter()
        .filter(|file| !file.diagnostics.is_empty())
        .map(|file| workflow::render(&file.diagnostics, &file.text, colour))
        .collect();
    shown.join("\n")
}
