//! Compares steps. Few steps have names, and a name may move to another step. So steps with the same script are paired, and the
//! steps between such pairs are compared in order.

use std::ops::Range;

use similar::{Algorithm, ChangeTag, capture_diff_slices};

use super::lines::compared;
use super::members::{Changes, flag, time};
use super::{Change, Edit, Part};
use crate::definition::Step;

pub(super) fn compare(before: &[Step], after: &[Step], found: &mut Vec<Change>) {
    let (former, current) = scripts(before, after);
    for op in capture_diff_slices(Algorithm::Myers, &former, &current) {
        pairs((before, op.old_range()), (after, op.new_range()), found);
    }
}

/// The script of each step, as the index of the first step whose script means the same.
fn scripts(before: &[Step], after: &[Step]) -> (Vec<usize>, Vec<usize>) {
    let all = || before.iter().chain(after);
    let first = |step: &Step| all().position(|other| other.run.means_the_same(&step.run));
    let mut scripts: Vec<usize> = all().filter_map(first).collect();
    let current = scripts.split_off(before.len());
    (scripts, current)
}

/// Compares two ranges of steps one by one; the remaining steps were added or removed.
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
    for change in compared(&before, &after)
        .iter()
        .flat_map(|op| op.iter_changes(&before, &after))
    {
        match change.tag() {
            ChangeTag::Equal => continue,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Insert => added += 1,
        }
        lines.push(format!("{}{}", change.tag(), change.value()));
    }
    Edit::Rewritten {
        removed,
        added,
        lines,
    }
}
