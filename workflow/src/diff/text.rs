//! A difference for people: a line for each scan, with the lines of scripts below it.

use std::fmt;

use super::{Change, Difference, Edit, Fate, Part, ScanDifference};

/// Characters of a value that are shown. The files have the rest.
const SHOWN: usize = 60;

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.workflow.is_empty() {
            write_line(f, "workflow", &self.workflow)?;
        }
        self.scans.iter().try_for_each(|scan| scan.fmt(f))
    }
}

impl fmt::Display for ScanDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scan,
            fate,
            changes,
        } = self;
        let head = match fate {
            Fate::Added => format!("scan `{scan}` added"),
            Fate::Removed => format!("scan `{scan}` removed"),
            Fate::Renamed {
                from,
                goes_on: true,
            } => format!("scan `{scan}` is `{from}` renamed, and keeps its results"),
            Fate::Renamed {
                from,
                goes_on: false,
            } => format!(
                "scan `{scan}` looks like `{from}` renamed, but starts without its results unless it has `renamed_from: {from}`"
            ),
            Fate::Changed => format!("scan `{scan}`"),
        };
        write_line(f, &head, changes)
    }
}

fn write_line(f: &mut fmt::Formatter<'_>, head: &str, changes: &[Change]) -> fmt::Result {
    let shown: Vec<String> = changes.iter().map(ToString::to_string).collect();
    let colon = if shown.is_empty() { "" } else { ": " };
    writeln!(f, "{head}{colon}{}", shown.join("; "))?;
    for change in changes {
        if let Edit::Rewritten { lines, .. } = &change.edit {
            lines
                .iter()
                .try_for_each(|line| writeln!(f, "    {line}"))?;
        }
    }
    Ok(())
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            part,
            member,
            edit,
            read_by,
        } = self;
        match (part, member) {
            (Part::Itself, Some(member)) => f.write_str(member)?,
            (part, Some(member)) => write!(f, "{part}: {member}")?,
            (part, None) => write!(f, "{part}")?,
        }
        match (edit, part, member) {
            (Edit::Added { .. }, Part::Input { .. } | Part::Artifact { .. }, None) => {
                f.write_str(" added")?;
            }
            (Edit::Removed { .. }, Part::Input { .. } | Part::Artifact { .. }, None) => {
                f.write_str(" no longer declared")?;
            }
            (Edit::Added { to }, _, _) => write!(f, " `{}` added", shortened(to))?,
            (Edit::Removed { from }, _, _) => write!(f, " `{}` removed", shortened(from))?,
            (Edit::Changed { from, to }, _, _) => {
                write!(f, " `{}` → `{}`", shortened(from), shortened(to))?;
            }
            (
                Edit::Rewritten {
                    removed: 0,
                    added: 0,
                    ..
                },
                _,
                _,
            ) => f.write_str(" differs in its line ends")?,
            (Edit::Rewritten { removed, added, .. }, _, _) => {
                let noun = if *removed == 1 { "line" } else { "lines" };
                write!(f, " {removed} {noun} removed, {added} added")?;
            }
        }
        let readers: Vec<String> = read_by.iter().map(|name| format!("`{name}`")).collect();
        match readers.as_slice() {
            [] => Ok(()),
            [one] => write!(f, ", {one} reads it"),
            all => write!(f, ", {} read it", all.join(", ")),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Itself => Ok(()),
            Self::Env { name } => write!(f, "env `{name}`"),
            Self::Input { name } => write!(f, "input `{name}`"),
            Self::Artifact { name } => write!(f, "artifact `{name}`"),
            Self::Step { position } => write!(f, "step {position}"),
        }
    }
}

/// The part of a value that fits on a line.
fn shortened(value: &str) -> String {
    let first = value.lines().next().unwrap_or_default();
    let mut shown: String = first.chars().take(SHOWN).collect();
    if shown.len() < value.trim_end().len() {
        shown.push('…');
    }
    shown
}
