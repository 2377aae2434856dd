//! Converts the differences between two workflows.

use workflow::{Change, Difference, Edit, Fate, Hunk, LineDifference, Part, ScanDifference};

pub(crate) fn text(difference: LineDifference) -> wire::TextDifference {
    let hunk = |hunk: Hunk| wire::Hunk {
        from_line: hunk.from as u64,
        to_line: hunk.to as u64,
        lines: hunk.lines,
    };
    wire::TextDifference {
        hunks: difference.hunks.into_iter().map(hunk).collect(),
        cut: difference.cut,
    }
}

pub(crate) fn difference(difference: &Difference) -> wire::Difference {
    wire::Difference {
        workflow: difference.workflow.iter().map(change).collect(),
        scans: difference.scans.iter().map(scan).collect(),
    }
}

fn scan(scan: &ScanDifference) -> wire::ScanDifference {
    wire::ScanDifference {
        scan: scan.scan.clone(),
        fate: match &scan.fate {
            Fate::Added => wire::Fate::Added,
            Fate::Removed => wire::Fate::Removed,
            Fate::Renamed { from, goes_on } => wire::Fate::Renamed {
                from: from.clone(),
                goes_on: *goes_on,
            },
            Fate::Changed => wire::Fate::Changed,
        },
        changes: scan.changes.iter().map(change).collect(),
    }
}

fn change(change: &Change) -> wire::Change {
    let name = |name: &String| name.clone();
    wire::Change {
        part: match &change.part {
            Part::Itself => wire::Part::Itself,
            Part::Env { name: env } => wire::Part::Env { name: name(env) },
            Part::Input { name: input } => wire::Part::Input { name: name(input) },
            Part::Artifact { name: artifact } => wire::Part::Artifact {
                name: name(artifact),
            },
            Part::Step { position } => wire::Part::Step {
                position: *position as u64,
            },
        },
        member: change.member.map(str::to_owned),
        edit: match &change.edit {
            Edit::Added { to } => wire::Edit::Added { to: to.clone() },
            Edit::Removed { from } => wire::Edit::Removed { from: from.clone() },
            Edit::Changed { from, to } => wire::Edit::Changed {
                from: from.clone(),
                to: to.clone(),
            },
            Edit::Rewritten {
                removed,
                added,
                lines,
            } => wire::Edit::Rewritten {
                removed: *removed as u64,
                added: *added as u64,
                lines: lines.clone(),
            },
        },
        read_by: change.read_by.clone(),
    }
}
