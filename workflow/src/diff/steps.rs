//! Compares steps. Few have names, and a name may move: steps with the same script belong together, and the steps between such pairs are
//! compared in order.

use std::ops::Range;

use super::align::gaps;
use super::members::{Changes, flag, time};
use super::written::Script;
use super::{Change, Edit, Part};
use crate::definition::Step;

pub(super) fn compare(before: &[Step], after: &[Step], found: &mut Vec<Change>) {
    let (mut was, mut is) = (0, 0);
    for gap in gaps(&scripts(before), &scripts(after)) {
        let kept = (was..gap.before.start, is..gap.after.start);
        pairs((before, kept.0), (after, kept.1), found);
        (was, is) = (gap.before.end, gap.after.end);
        pairs((before, gap.before), (after, gap.after), found);
    }
    pairs((before, was..before.len()), (after, is..after.len()), found);
}

fn scripts(steps: &[Step]) -> Vec<Script<'_>> {
    steps.iter().map(|step| Script(&step.run)).collect()
}

/// Compares a range of steps one by one; the remaining ones were added or removed.
fn pairs(before: (&[Step], Range<usize>), after: (&[Step], Range<usize>), found: &mut Vec<Change>) {
    let mut former = stretch(before);
    let mut current = stretch(after);
    loop {
        let (was, is) = (former.next(), current.next());
        let Some((place, _)) = is.or(was) else {
            return;
        };
        let mut changes = Changes::of(Part::Step {
            position: place + 1,
        });
        match (was, is) {
            (Some((_, was)), Some((_, is))) => members(was, is, &mut changes),
            (was, is) => {
                let script = |(_, step): (usize, &Step)| step.run.source().to_owned();
                changes.whole(was.map(script), is.map(script));
            }
        }
        found.extend(changes.found);
    }
}

/// The steps of a range with their places.
fn stretch((steps, range): (&[Step], Range<usize>)) -> impl Iterator<Item = (usize, &Step)> {
    steps.iter().enumerate().take(range.end).skip(range.start)
}

fn members(before: &Step, after: &Step, changes: &mut Changes) {
    let Step {
        name,
        run,
        shell,
        condition,
        allow_failure,
        timeout,
    } = before;
    changes.compare("name", name.clone(), after.name.clone());
    if !run.means_the_same(&after.run) {
        changes.edit(Some("run"), rewritten(run.source(), after.run.source()));
    }
    let words = |shell: Option<&Vec<String>>| shell.map(shell_words::join);
    changes.compare("shell", words(shell.as_ref()), words(after.shell.as_ref()));
    changes.meaning(Some("if"), condition.as_ref(), after.condition.as_ref());
    changes.compare(
        "allow_failure",
        flag(*allow_failure),
        flag(after.allow_failure),
    );
    changes.compare("timeout", time(*timeout), time(after.timeout));
}

fn rewritten(before: &str, after: &str) -> Edit {
    let before: Vec<&str> = before.lines().collect();
    let after: Vec<&str> = after.lines().collect();
    let (mut removed, mut added) = (0, 0);
    let mut lines = Vec::new();
    for gap in gaps(&before, &after) {
        removed += gap.before.len();
        added += gap.after.len();
        let marked = |mark: &'static str, lines: Option<&[&str]>| -> Vec<String> {
            let lines = lines.unwrap_or_default().iter();
            lines.map(|line| format!("{mark}{line}")).collect()
        };
        lines.extend(marked("-", before.get(gap.before)));
        lines.extend(marked("+", after.get(gap.after)));
    }
    Edit::Rewritten {
        removed,
        added,
        lines,
    }
}
