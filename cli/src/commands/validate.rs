//! `everscan validate`: checks workflow files with the code the daemon uses.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use workflow::{Code, Diagnostic, Severity, TemplatePolicy};

use crate::connection::read_text;
use crate::error::Error;
use crate::exit::Exit;
use crate::format::Format;
use crate::session::Session;
use crate::{limits, workflow_files};

/// Where a repository keeps its workflows unless its source says otherwise.
const DEFAULT_FOLDER: &str = "workflows";

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Files, and folders that are searched for *.yaml and *.yml [default: workflows]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// What was found in all files.
#[derive(Debug, Serialize)]
struct Report {
    files: Vec<Checked>,
}

/// What was found in one file.
#[derive(Debug, Serialize)]
struct Checked {
    file: String,
    valid: bool,
    diagnostics: Vec<Diagnostic>,
    /// Why the file could not be checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// For excerpts.
    #[serde(skip)]
    text: String,
}

impl Validate {
    pub(crate) fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let is_default = self.paths.is_empty();
        let paths = if is_default {
            vec![PathBuf::from(DEFAULT_FOLDER)]
        } else {
            self.paths
        };
        if is_default && !Path::new(DEFAULT_FOLDER).is_dir() {
            return Err(nothing_in(format!(
                "there is no folder `{DEFAULT_FOLDER}` here, which is where workflow files are looked for"
            )));
        }
        let files = workflow_files::find(&paths)?;
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
        let rivals = workflow_files::rivals(&files);
        let report = Report {
            files: files
                .iter()
                .map(|file| check(file, rivals.get(file.as_path()).copied()))
                .collect(),
        };
        let colour = session.format == Format::Table && session.terminal.is_colourful();
        session.show(&report, |report| {
            report
                .files
                .iter()
                .map(|file| excerpts(file, colour))
                .collect()
        })?;
        Ok(conclude(session, &report))
    }
}

fn nothing_in(what: String) -> Error {
    Error::Usage {
        what,
        hint: "name files or folders: everscan validate PATH; in folders, workflow files end in .yaml or .yml",
    }
}

fn check(path: &Path, rival: Option<&Path>) -> Checked {
    let file = path.display().to_string();
    let text = match read_text(path, limits::WORKFLOW_FILE) {
        Ok(text) => text,
        Err(error) => {
            return Checked {
                file,
                valid: false,
                diagnostics: Vec::new(),
                error: Some(error.with_cause()),
                text: String::new(),
            };
        }
    };
    let mut diagnostics = match workflow::parse(&file, &text, TemplatePolicy::Warn) {
        Ok(parsed) => parsed.warnings,
        Err(diagnostics) => diagnostics,
    };
    diagnostics.extend(rival.map(|rival| same_name(&file, rival)));
    Checked {
        file,
        valid: diagnostics
            .iter()
            .all(|diagnostic| diagnostic.severity != Severity::Error),
        diagnostics,
        error: None,
        text,
    }
}

fn same_name(file: &str, rival: &Path) -> Diagnostic {
    Diagnostic {
        file: file.to_owned(),
        line: 1,
        column: 1,
        end_line: 1,
        end_column: 1,
        severity: Severity::Error,
        code: Code::DuplicateName,
        message: format!("{} is the same workflow", rival.display()),
        hint: Some("a workflow is named by its path without the extension; rename one".to_owned()),
    }
}

fn excerpts(checked: &Checked, colour: bool) -> String {
    match &checked.error {
        Some(error) => format!("error: {error}\n"),
        None => workflow::render(&checked.diagnostics, &checked.text, colour),
    }
}

/// Says how many files are in order, and whether that is all of them.
fn conclude(session: &mut Session<'_>, report: &Report) -> Exit {
    let all = report.files.len();
    let invalid = report.files.iter().filter(|file| !file.valid).count();
    let noun = if all == 1 { "file" } else { "files" };
    if invalid == 0 {
        session.terminal.say(&format!("{all} {noun} valid"));
        Exit::Succeeded
    } else {
        session
            .terminal
            .say(&format!("{invalid} of {all} {noun} invalid"));
        Exit::Failed
    }
}
