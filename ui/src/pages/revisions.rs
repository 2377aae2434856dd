//! The revisions of a workflow, the text of one with its problems, and the difference between two.

use chrono::{DateTime, FixedOffset};
use maud::{Markup, html};
use wire::{
    Change, Diagnostic, Edit, Fate, Hunk, Page, Part, Revision, RevisionDiff, RevisionRef,
    RevisionText, ScanDifference, TextDifference,
};

use crate::links;
use crate::list::{card, damaged, diagnostics, empty, facts, more, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading};
use crate::words::{ago, at, condition, count, grouped, hits, short_commit, with_code};

/// `workflow` is `source/name`.
pub fn revisions(visit: &Visit, workflow: &str, page: &Page<Revision>) -> Markup {
    let path = links::revisions(workflow);
    let heads = ["revision", "commit", "activated", "digest of the file", ""];
    let side = html! { (hits(page.items.len(), page.next_cursor.is_some())) };
    let content = html! {
        (heading("Revisions", &html! { span.tag { (workflow) } }, &html! {}))
        (damaged(&page.damaged))
        (card("revisions", "Newest first", &side, &html! {
            (table("Revisions", &heads, &html! {
                @for revision in &page.items { (revision_row(visit, workflow, revision)) }
            }))
        }))
        (more(&path, &[], page.next_cursor.as_deref()))
    };
    Shell::new(visit, "Revisions", Some(Menu::Workflows))
        .under([
            Crumb::new("Workflows", links::WORKFLOWS),
            Crumb::new(workflow, links::workflow(workflow)),
        ])
        .page(&content)
}

fn revision_row(visit: &Visit, workflow: &str, revision: &Revision) -> Markup {
    let before = revision.number.saturating_sub(1);
    let against = before.to_string();
    html! {
        tr {
            td { a href=(links::revision(workflow, revision.number)) { (revision.number) } }
            td { (short_commit(&revision.commit)) }
            td { @if let Some(since) = revision.activated_at { (ago(since, visit.now)) } @else { "cannot be read" } }
            td { @if let Some(digest) = &revision.sha256 { code.cut title=(digest) { (digest) } } }
            td.end {
                @if before > 0 {
                    a.button.small href=(links::with_query(&links::revision(workflow, revision.number), &[("against", &against)])) {
                        "Compare with " (before)
                    }
                }
            }
        }
    }
}

pub struct RevisionPage<'a> {
    /// As `source/name`.
    pub workflow: &'a str,
    pub revision: &'a RevisionText,
    /// The difference to the revision that the reader chose.
    pub diff: Option<&'a RevisionDiff>,
}

pub fn revision(visit: &Visit, page: &RevisionPage<'_>) -> Markup {
    let text = page.revision;
    let revision = &text.revision;
    let title = format!("Revision {}", revision.number);
    let content = html! {
        (heading(&title, &html! { span.tag { (page.workflow) } }, &html! {
            (compare(page))
        }))
        (facts(&[
            ("commit", short_commit(&revision.commit)),
            ("activated", html! { @if let Some(since) = revision.activated_at { (at(since)) } }),
            ("file", html! { code { (text.file) } }),
            ("scans", html! { (text.scans.len()) }),
        ]))
        @if let Some(diff) = page.diff { (difference(page.workflow, diff)) (text_difference(&diff.text)) }
        @if !text.diagnostics.is_empty() {
            (card("problems", "Problems", &html! { (text.diagnostics.len()) }, &diagnostics(&text.diagnostics)))
        }
        (card("file", "File", &html! {
            @if text.valid { (condition("succeeded", "valid")) } @else { (condition("failed", "not valid for this daemon")) }
        }, &source(text)))
    };
    Shell::new(visit, &title, Some(Menu::Workflows))
        .under([
            Crumb::new("Workflows", links::WORKFLOWS),
            Crumb::new(page.workflow, links::workflow(page.workflow)),
            Crumb::new("Revisions", links::revisions(page.workflow)),
        ])
        .page(&content)
}

fn compare(page: &RevisionPage<'_>) -> Markup {
    let number = page.revision.revision.number;
    let path = links::revision(page.workflow, number);
    let before = number.saturating_sub(1).max(1);
    let against = page.diff.map_or(before, |diff| diff.from.number);
    html! {
        @if number > 1 || page.diff.is_some() {
            form.filters method="get" action=(path) aria-label="Compare" {
                div.field {
                    label for="against" { "Compare with revision" }
                    input #against name="against" type="number" min="1" value=(against) required;
                }
                button.button type="submit" { "Compare" }
            }
        }
    }
}

fn source(text: &RevisionText) -> Markup {
    let at_line = |number: usize| {
        let is_here =
            move |diagnostic: &&Diagnostic| usize::try_from(diagnostic.line) == Ok(number);
        text.diagnostics.iter().filter(is_here)
    };
    html! {
        div.source tabindex="0" role="group" aria-label="Text of the file" {
            @for (place, line) in text.text.lines().enumerate() {
                @let number = place + 1;
                div.line.wrong[at_line(number).next().is_some()] id={ "L" (number) } {
                    a href={ "#L" (number) } aria-label={ "Line " (number) } { (number) }
                    code.t { (line) }
                }
                @for diagnostic in at_line(number) { p.beside { (with_code(&diagnostic.message)) } }
            }
        }
    }
}

fn difference(workflow: &str, diff: &RevisionDiff) -> Markup {
    let side = html! {
        "from " a href=(links::revision(workflow, diff.from.number)) { (diff.from.number) }
        " to " a href=(links::revision(workflow, diff.to.number)) { (diff.to.number) }
    };
    let difference = &diff.difference;
    html! {
        (card("difference", "Differences in meaning", &side, &html! {
            @if difference.workflow.is_empty() && difference.scans.is_empty() {
                (empty(&html! { p { "Both revisions mean the same." } }))
            } @else {
                div.body.changes {
                    @if !difference.workflow.is_empty() {
                        h3 { "Outside of the scans" }
                        (changes(&difference.workflow))
                    }
                    @for scan in &difference.scans { (scan_difference(scan)) }
                }
            }
            (next_slots(diff))
            @if !diff.untouched.is_empty() && !difference.scans.is_empty() {
                p.body.muted { "Untouched: " (diff.untouched.join(", ")) "." }
            }
        }))
    }
}

/// The next slots that differ.
fn next_slots(diff: &RevisionDiff) -> Markup {
    let by = |revision: &RevisionRef| format!("next slots by revision {}", revision.number);
    let (from, to) = (by(&diff.from), by(&diff.to));
    let times = |slots: &[DateTime<FixedOffset>]| {
        html! {
            @if slots.is_empty() { span.muted { "none" } }
            @for slot in slots { div { (at(slot.to_utc())) } }
        }
    };
    html! {
        @if !diff.next_slots.is_empty() {
            (table("Next slots of the schedules that differ", &["scan", &from, &to], &html! {
                @for difference in &diff.next_slots {
                    tr {
                        td.long { (difference.scan) }
                        td { (times(&difference.from)) }
                        td { (times(&difference.to)) }
                    }
                }
            }))
        }
    }
}

/// The lines that differ, with context.
fn text_difference(text: &TextDifference) -> Markup {
    let lines = || text.hunks.iter().flat_map(|hunk| &hunk.lines);
    let marked = |mark: char| lines().filter(|line| line.starts_with(mark)).count() as u64;
    let side = html! {
        ins { "+" (grouped(marked('+'))) } del { "-" (grouped(marked('-'))) }
    };
    html! {
        (card("text", "Differences in the text", &side, &html! {
            @if text.hunks.is_empty() {
                (empty(&html! { p { "Both texts are the same." } }))
            } @else {
                div.source.patch tabindex="0" role="group" aria-label="Lines that differ" {
                    @for hunk in &text.hunks { (hunk_lines(hunk)) }
                }
                @if text.cut { p.body.note { "The difference is longer than a page can show. The rest is left out." } }
            }
        }))
    }
}

fn hunk_lines(hunk: &Hunk) -> Markup {
    let (mut from, mut to) = (hunk.from_line, hunk.to_line);
    html! {
        div.line.group { "Line " (hunk.to_line) @if hunk.from_line != hunk.to_line { ", formerly " (hunk.from_line) } }
        @for line in &hunk.lines {
            @let (is_added, is_removed) = (line.starts_with('+'), line.starts_with('-'));
            @let number = if is_removed { from } else { to };
            div.line.added[is_added].removed[is_removed] {
                span.at { (number) }
                code.t {
                    @if is_added { ins { (line) } } @else if is_removed { del { (line) } } @else { (line) }
                }
            }
            @let () = { from += u64::from(!is_added); to += u64::from(!is_removed); };
        }
    }
}

fn scan_difference(difference: &ScanDifference) -> Markup {
    let fate = match &difference.fate {
        Fate::Added => html! { "added" },
        Fate::Removed => html! { "removed" },
        Fate::Renamed {
            from,
            goes_on: true,
        } => html! { "renamed from " code { (from) } ", keeps its results" },
        Fate::Renamed {
            from,
            goes_on: false,
        } => html! {
            "looks renamed from " code { (from) } ", but starts without results unless it has " code { "renamed_from: " (from) }
        },
        Fate::Changed => html! { "changed" },
    };
    html! {
        h3 { (difference.scan) " " span.muted { (fate) } }
        (changes(&difference.changes))
    }
}

fn changes(changes: &[Change]) -> Markup {
    html! {
        @if !changes.is_empty() {
            ul.plain { @for change in changes { li { (one_change(change)) } } }
        }
    }
}

fn one_change(change: &Change) -> Markup {
    let part = match &change.part {
        Part::Itself => html! {},
        Part::Env { name } => html! { "env " code { (name) } " " },
        Part::Input { name } => html! { "input " code { (name) } " " },
        Part::Artifact { name } => html! { "artifact " code { (name) } " " },
        Part::Step { position } => html! { "step " (position) " " },
    };
    html! {
        (part)
        @if let Some(member) = &change.member { code { (member) } " " }
        @match &change.edit {
            Edit::Added { to } => { "added: " ins { (to) } }
            Edit::Removed { from } => { "removed: " del { (from) } }
            Edit::Changed { from, to } => { "was " del { (from) } ", is " ins { (to) } }
            Edit::Rewritten { removed, added, lines } => {
                "rewritten: " (count(*removed, "line", "lines")) " removed, " (added) " added"
                pre.patch tabindex="0" role="group" aria-label="Lines that differ" { @for line in lines { (patch_line(line)) } }
            }
        }
        @if !change.read_by.is_empty() {
            p.note { "Still read by " (change.read_by.join(", ")) "." }
        }
    }
}

/// A changed line. Its sign says the same as its colour.
fn patch_line(line: &str) -> Markup {
    if line.starts_with('+') {
        html! { ins { (line) } "\n" }
    } else {
        html! { del { (line) } "\n" }
    }
}
