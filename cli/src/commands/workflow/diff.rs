//! `everscan workflow diff`: compares the meaning of two files, of a workflow and a file, or of two revisions of a workflow.

use std::path::{Path, PathBuf};

use chrono::{DateTime, FixedOffset};
use clap::Args;
use wire::{RevisionDiff, SlotDifference};
use workflow::{Diagnostic, Difference, TemplatePolicy, Workflow};

use crate::error::Error;
use crate::exit::Exit;
use crate::limits;
use crate::reading::read_given;
use crate::session::Session;
use crate::table::short_commit;
use crate::untrusted::clean;

/// The end of the help text. This command has different codes for unreadable and invalid files.
const CODES: &str = "\
Exit codes:
  0  compared, whether they differ or not
  1  a file has errors, or the daemon refused
  2  wrong usage, or a file cannot be read";

const NEWEST: &str = "newest";

#[derive(Debug, Args)]
#[command(
    after_help = CODES,
    override_usage = "everscan workflow diff [OPTIONS] <FILE|WORKFLOW> <FILE>\n       everscan workflow diff [OPTIONS] <WORKFLOW> [FROM [TO]]"
)]
pub(crate) struct Diff {
    /// Old file, or - for standard input; or a workflow: its name, SOURCE/NAME, or id
    #[arg(value_name = "FILE|WORKFLOW")]
    first: String,
    /// New file, also to compare with the newest revision of a workflow; or the number of the revision to compare with, by default the one before TO
    #[arg(value_name = "FILE|FROM")]
    second: Option<String>,
    /// Number of the revision to compare, or newest
    #[arg(value_name = "TO", default_value = NEWEST)]
    to: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Compared {
    Files(PathBuf, PathBuf),
    /// What is active, and a file that is not pushed.
    Draft {
        workflow: String,
        file: PathBuf,
    },
    Revisions {
        workflow: String,
        from: Option<String>,
        to: String,
    },
}

impl Diff {
    /// The second word is a revision if it is a number or `newest`, otherwise a file. Write `./3` for a file named `3`.
    fn compared(self) -> Result<Compared, Error> {
        let Self { first, second, to } = self;
        let is_revision = |text: &str| text == NEWEST || text.parse::<u64>().is_ok();
        match second {
            Some(second) if !is_revision(&second) => {
                if to != NEWEST {
                    return Err(Error::Usage {
                        what: format!("`{second}` is no revision"),
                        hint: "revisions have numbers, which `everscan workflow history` lists",
                    });
                }
                // A file may have any name; a workflow of the same name has a source: SOURCE/NAME.
                if is_file_name(&first)
                    || (Path::new(&first).exists() && !Path::new(&first).is_dir())
                {
                    return Ok(Compared::Files(first.into(), second.into()));
                }
                Ok(Compared::Draft {
                    workflow: first,
                    file: second.into(),
                })
            }
            None if is_file_name(&first) => Err(Error::Usage {
                what: "the second file is missing".to_owned(),
                hint: "name two files, or a workflow of the daemon without .yaml",
            }),
            from => Ok(Compared::Revisions {
                workflow: first,
                from,
                to,
            }),
        }
    }

    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let is_same = match self.compared()? {
            Compared::Files(before, after) => {
                let difference = workflow::diff(&read(&before)?, &read(&after)?);
                session.show(&difference, text)?;
                difference.is_empty()
            }
            Compared::Draft { workflow, file } => {
                let after = read(&file)?;
                let active = session.client()?.revision(&workflow, NEWEST).await?;
                let commit = short_commit(&active.revision.commit);
                let number = active.revision.number;
                session.report(&clean(&format!(
                    "revision {number} ({commit}) → {}",
                    file.display()
                )));
                let difference = workflow::diff(&parse(&active.file, &active.text)?, &after);
                session.show(&difference, text)?;
                difference.is_empty()
            }
            Compared::Revisions { workflow, from, to } => {
                let client = session.client()?;
                let diff = client.revision_diff(&workflow, from.as_deref(), &to);
                let diff = diff.await?;
                session.report(&heading(&diff));
                session.show(&diff, |diff| {
                    let slots = diff.next_slots.iter().map(next_slots);
                    cleaned(diff.lines.iter().cloned().chain(slots))
                })?;
                diff.lines.is_empty()
            }
        };
        if is_same {
            session.report("no difference");
        }
        Ok(Exit::Succeeded)
    }
}

/// True for the name of a file. The name of a workflow has no extension.
fn is_file_name(text: &str) -> bool {
    let extension = Path::new(text).extension();
    text == "-" || extension.is_some_and(|end| end == "yaml" || end == "yml")
}

fn heading(diff: &RevisionDiff) -> String {
    let RevisionDiff { from, to, .. } = diff;
    clean(&format!(
        "revision {} ({}) → {} ({})",
        from.number,
        short_commit(&from.commit),
        to.number,
        short_commit(&to.commit)
    ))
}

/// Reads a file. It must be valid, because an invalid file has no meaning to compare.
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
    parse(&file, &text)
}

fn parse(file: &str, text: &str) -> Result<Workflow, Error> {
    workflow::parse(file, text, TemplatePolicy::Warn)
        .map(|parsed| parsed.workflow)
        .map_err(|diagnostics| Error::Refused {
            excerpts: workflow::render(&diagnostics, text, false),
        })
}

fn text(difference: &Difference) -> String {
    cleaned(difference.to_string().lines().map(str::to_owned))
}

/// The next slots of a scan by both revisions, in the form of the other lines.
fn next_slots(difference: &SlotDifference) -> String {
    let times = |slots: &[DateTime<FixedOffset>]| match slots {
        [] => "none".to_owned(),
        slots => slots
            .iter()
            .map(|slot| format!("`{}`", slot.format("%F %R %:z")))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let SlotDifference { scan, from, to } = difference;
    format!("scan `{scan}`: next slots {} → {}", times(from), times(to))
}

fn cleaned(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| clean(&line) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_argument_is_a_revision_number_or_a_file() {
        let compared = |words: &[&str]| {
            let diff = Diff {
                first: words[0].to_owned(),
                second: words.get(1).map(ToString::to_string),
                to: words.get(2).unwrap_or(&NEWEST).to_string(),
            };
            diff.compared()
        };
        let revisions = |from: Option<&str>, to: &str| Compared::Revisions {
            workflow: "recon".to_owned(),
            from: from.map(str::to_owned),
            to: to.to_owned(),
        };
        for (words, expected) in [
            (&["recon"][..], revisions(None, "newest")),
            (&["recon", "3"], revisions(Some("3"), "newest")),
            (&["recon", "3", "5"], revisions(Some("3"), "5")),
            (
                &["a.yaml", "b.yaml"],
                Compared::Files("a.yaml".into(), "b.yaml".into()),
            ),
            (&["-", "./3"], Compared::Files("-".into(), "./3".into())),
            (
                &["recon", "b.yaml"],
                Compared::Draft {
                    workflow: "recon".to_owned(),
                    file: "b.yaml".into(),
                },
            ),
            (&["-", "b"], Compared::Files("-".into(), "b".into())),
        ] {
            assert_eq!(compared(words).unwrap(), expected, "{words:?}");
        }
        for words in [&["a.yaml"][..], &["-"], &["recon", "x", "3"]] {
            assert!(compared(words).is_err(), "{words:?}");
        }
    }
}
