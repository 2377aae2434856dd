//! The output of a check: one line for each finding and a summary, or one JSON object. Both are written during the check, so a
//! folder with a million findings needs no memory for them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use state::fsck::{Checked, Counts, Finding, Loss, Moved, Repair, Severity};

use super::progress::ProgressLine;
use super::undo;
use crate::arguments::OutputForm;
use crate::exit;

pub(crate) struct Output<W> {
    form: OutputForm,
    root: PathBuf,
    to: W,
    /// The first failure to write. Nothing is written after a failure.
    failed: Option<io::Error>,
    section: Option<Section>,
    is_first: bool,
    found: Tally,
    left: Tally,
    repairs: Vec<Repair>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Findings,
    Left,
}

#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Tally {
    errors: u64,
    warnings: u64,
    notes: u64,
}

#[derive(Serialize)]
struct Summary {
    clean: bool,
    #[serde(flatten)]
    tally: Tally,
    looked_at: Counts,
    checkpoint: u64,
    last_commit: u64,
    epoch: u64,
    in_use: bool,
    unsettled: u64,
}

#[derive(Serialize)]
struct Repaired<'a> {
    repairs: &'a [Repair],
    undo: &'a [String],
}

impl<W: Write> Output<W> {
    pub(crate) fn new(form: OutputForm, root: &Path, to: W) -> Self {
        Self {
            form,
            root: root.to_owned(),
            to,
            failed: None,
            section: None,
            is_first: true,
            found: Tally::default(),
            left: Tally::default(),
            repairs: Vec::new(),
        }
    }

    pub(crate) fn finding(&mut self, section: Section, finding: &Finding, line: &mut ProgressLine) {
        match section {
            Section::Findings => self.found.count(finding.severity),
            Section::Left => self.left.count(finding.severity),
        }
        line.clear();
        self.write(|output| match output.form {
            OutputForm::Text => {
                let what = match section {
                    Section::Findings => finding.severity.name().to_owned(),
                    Section::Left => format!("left: {}", finding.severity.name()),
                };
                let Finding {
                    code,
                    path,
                    what: problem,
                    hint,
                    ..
                } = finding;
                let line = format!("{what}  {path}: {problem} [{code}]; {hint}");
                writeln!(output.to, "{}", cli::clean(&line))
            }
            OutputForm::Json => {
                output.enter(section)?;
                let comma = if std::mem::take(&mut output.is_first) {
                    "\n"
                } else {
                    ",\n"
                };
                write!(output.to, "{comma}{}", serde_json::to_string(finding)?)
            }
        });
    }

    pub(crate) fn repair(&mut self, repair: &Repair, line: &mut ProgressLine) {
        self.repairs.push(repair.clone());
        line.clear();
        self.write(|output| match output.form {
            OutputForm::Text => {
                let text = match repair {
                    Repair::Moved(Moved { from, to }) => format!("moved {from} to {to}"),
                    Repair::Closed { path, mode } => {
                        format!("closed {path} to others than its owner; its mode was {mode}")
                    }
                    Repair::Recounted { path } => format!("rewrote {path}"),
                    Repair::Lost(Loss { first, last }) => {
                        format!("gave up the changes {first} to {last}")
                    }
                };
                writeln!(output.to, "repaired: {}", cli::clean(&text))
            }
            // Repairs are listed together, after the findings.
            OutputForm::Json => Ok(()),
        });
    }

    /// Writes the end and returns the exit code. The code is known even if the end cannot be written.
    pub(crate) fn end(mut self, checked: &Checked, is_repair: bool) -> Result<u8, (io::Error, u8)> {
        let tally = if is_repair { self.left } else { self.found };
        let code = if tally.is_clean() {
            exit::STOPPED
        } else {
            exit::FINDINGS
        };
        self.write(|output| {
            match output.form {
                OutputForm::Text => output.end_text(checked, is_repair, tally)?,
                OutputForm::Json => output.end_json(checked, is_repair, tally)?,
            }
            output.to.flush()
        });
        match self.failed {
            None => Ok(code),
            Some(error) => Err((error, code)),
        }
    }

    fn end_json(&mut self, checked: &Checked, is_repair: bool, tally: Tally) -> io::Result<()> {
        self.enter(if is_repair {
            Section::Left
        } else {
            Section::Findings
        })?;
        write!(self.to, "\n]")?;
        if is_repair {
            let repaired = Repaired {
                repairs: &self.repairs,
                undo: &undo::commands(&self.root, &self.repairs),
            };
            write!(
                self.to,
                ",\n\"repaired\":{}",
                serde_json::to_string(&repaired)?
            )?;
        }
        let summary = Summary {
            clean: tally.is_clean(),
            tally,
            looked_at: checked.counts,
            checkpoint: checked.position.checkpoint.0,
            last_commit: checked.position.last.0,
            epoch: checked.position.epoch.0,
            in_use: checked.user.is_some(),
            unsettled: checked.unsettled,
        };
        writeln!(
            self.to,
            ",\n\"summary\":{}}}",
            serde_json::to_string(&summary)?
        )
    }

    fn end_text(&mut self, checked: &Checked, is_repair: bool, tally: Tally) -> io::Result<()> {
        if is_repair {
            let commands = undo::commands(&self.root, &self.repairs);
            if !commands.is_empty() {
                writeln!(self.to, "to undo it, while no daemon runs:")?;
            }
            for command in commands {
                writeln!(self.to, "  {}", cli::clean(&command))?;
            }
        }
        let counts = checked.counts;
        writeln!(
            self.to,
            "checked {} files with {} bytes: {} records, {} jobs; the last commit is {}",
            counts.files, counts.bytes, counts.records, counts.jobs, checked.position.last
        )?;
        if let Some(user) = &checked.user {
            writeln!(self.to, "the state is in use by {user}")?;
        }
        if checked.unsettled > 0 {
            writeln!(
                self.to,
                "{} parts kept changing and were not checked; stop the daemon to check them",
                checked.unsettled
            )?;
        }
        let Tally {
            errors,
            warnings,
            notes,
        } = tally;
        let verdict = if tally.is_clean() {
            "clean"
        } else {
            "not clean"
        };
        writeln!(
            self.to,
            "{verdict}: {errors} errors, {warnings} warnings, {notes} notes"
        )
    }

    fn enter(&mut self, section: Section) -> io::Result<()> {
        if self.section.is_none() {
            let root = serde_json::to_string(&self.root.to_string_lossy())?;
            write!(self.to, "{{\"state\":{root},\n\"findings\":[")?;
            self.section = Some(Section::Findings);
        }
        if self.section == Some(Section::Findings) && section == Section::Left {
            write!(self.to, "\n],\n\"left\":[")?;
            self.section = Some(Section::Left);
            self.is_first = true;
        }
        Ok(())
    }

    fn write(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) {
        if self.failed.is_none() {
            self.failed = write(self).err();
        }
    }
}

impl Tally {
    fn count(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
            Severity::Note => self.notes += 1,
        }
    }

    /// A crash may leave files that cause notes, so notes do not make a state unclean.
    const fn is_clean(self) -> bool {
        self.errors == 0 && self.warnings == 0
    }
}

#[cfg(test)]
mod tests;
