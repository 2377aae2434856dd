//! The log of a job: the element of the virtual log, and the pages that need no script.

use maud::{Markup, html};
use wire::{Job, JobState, LogRecord, OVERWRITTEN, StepOutcome, Stream};

use crate::links;
use crate::list::empty;
use crate::shell::{Crumb, Menu, Shell, Visit, heading};
use crate::words::{badge, bytes, count, grouped, icon, short_id};

/// The element of the virtual log. Without scripts it has a link to the plain pages. A script loads the records, so updates of
/// the page leave them alone.
pub(super) fn virtual_log(job: &Job, topic: &str) -> Markup {
    let failed = failed_step(job);
    html! {
        section.card.logcard aria-labelledby="log-title" {
            div.logbar {
                h2 #log-title.visually-hidden { "Log" }
                (search_tools())
                span.push {}
                (toggle("times", "t", "hides-times", "clear"))
                (toggle("wrap", "w", "unwrapped", "clear"))
                a.button.small href=(links::job_log(job.id)) { "plain" }
                a.button.small href=(links::raw_log(job.id)) { "raw" }
                a.button.small href=(links::raw_log(job.id)) download={ (job.id) ".log" } { "download" }
            }
            div.log #log role="log" aria-live="off" aria-label={ "Log of " (job.scan) } tabindex="0" data-keep
                data-log=(links::log_records(job.id)) data-search=(links::log_search(job.id)) data-failed=[failed] {
                div.empty { p {
                    a href=(links::job_log(job.id)) { "Read the log" } ", " (count(job.log.records, "line", "lines")) "."
                    @if let Some(step) = failed {
                        " " a href=(links::with_query(&links::job_log(job.id), &[("step", &step.to_string())])) { "Only the failed step" } "."
                    }
                } }
            }
            button.button.first.follow #log-follow type="button" hidden data-key="f" { (icon("down")) "Follow" }
            (hidden_actions())
            div.logfoot.region #log-foot data-live=(topic) {
                span #log-state data-records=(job.log.records) data-over=(job.state.is_terminal()) {
                    (count(job.log.records, "line", "lines"))
                }
                @if let Some(cut) = job.log.cut {
                    span.failed-text {
                        "Cut at " (bytes(cut.limit)) ": later output was not kept "
                        a href={ "#L" (cut.record + 1) } { "(line " (grouped(cut.record + 1)) ")" }
                    }
                }
            }
        }
    }
}

/// The index of the step that failed the job.
fn failed_step(job: &Job) -> Option<u32> {
    if job.state != JobState::Failed {
        return None;
    }
    let mut steps = job.steps.iter();
    let failed = steps.find(|step| step.outcome == Some(StepOutcome::Failed))?;
    Some(failed.index)
}

fn search_tools() -> Markup {
    html! {
        div.search data-log-tool hidden {
            (icon("search"))
            input #log-text type="search" aria-label="Search the log" placeholder="Search" autocomplete="off" spellcheck="false";
            span.hits #log-hits role="status" {}
            button.square type="button" data-log-action="previous" data-key="N" aria-label="Previous match" { (icon("up")) }
            button.square type="button" data-log-action="next" data-key="n" aria-label="Next match" { (icon("down")) }
        }
    }
}

/// A button that toggles a class of the log.
fn toggle(label: &str, key: &str, class: &str, on: &str) -> Markup {
    html! {
        button.button.small type="button" hidden data-log-tool data-key=(key) data-toggles=(class) data-on=(on) aria-pressed="true" {
            (label)
        }
    }
}

/// Makes actions that have only a shortcut visible and reachable by the keyboard.
fn hidden_actions() -> Markup {
    const ACTIONS: [(&str, &str, &str); 4] = [
        ("first", "gg", "Start"),
        ("last", "G", "End"),
        ("error", "e", "Next line on standard error"),
        ("link", "y", "Copy the link to the line"),
    ];
    html! {
        div.logtools hidden data-log-tool {
            @for (action, key, label) in ACTIONS {
                button.plain type="button" data-log-action=(action) data-key=(key) { (label) }
            }
        }
    }
}

/// One plain page of a log.
pub struct LogPage<'a> {
    pub job: &'a Job,
    pub records: &'a [LogRecord],
    /// The first record of the page.
    pub from: u64,
    /// Records per page.
    pub limit: u64,
    /// The search text; empty for all lines.
    pub query: &'a str,
    /// Show only this step, from 0.
    pub step: Option<u32>,
    /// The first record of the next page.
    pub next: Option<u64>,
    /// The number of matching lines, during a search.
    pub total: Option<u64>,
}

pub fn job_log(visit: &Visit, page: &LogPage<'_>) -> Markup {
    let job = page.job;
    let path = links::job_log(job.id);
    let step = page.step.map(|step| step.to_string()).unwrap_or_default();
    let at = |from: u64| {
        let (from, limit) = (from.to_string(), page.limit.to_string());
        links::with_query(
            &path,
            &[
                ("from", &from),
                ("limit", &limit),
                ("q", page.query),
                ("step", &step),
            ],
        )
    };
    let content = html! {
        (heading("Log", &html! { (badge(job.state)) }, &html! { a.button href=(links::raw_log(job.id)) { "Raw text" } }))
        form.filters method="get" action=(path) role="search" aria-label="Log" {
            div.field {
                label for="log-query" { "Search" }
                input #log-query type="search" name="q" value=(page.query) spellcheck="false";
            }
            button.button type="submit" { (icon("search")) "Search" }
        }
        p { (summary(page)) }
        @if page.records.is_empty() {
            (empty(&html! {
                p { @if page.query.is_empty() { "There are no lines here." } @else { "No line contains this text." } }
            }))
        } @else {
            div.log.flat role="log" aria-live="off" aria-label={ "Log of " (job.scan) } tabindex="0" {
                @for record in page.records { (line(job, record)) }
            }
        }
        nav.more aria-label="Pages" {
            @if page.query.is_empty() && page.from > 0 {
                a.button rel="prev" href=(at(page.from.saturating_sub(page.limit))) { "Earlier lines" }
            }
            @if let Some(next) = page.next { a.button rel="next" href=(at(next)) { "Later lines" } }
        }
    };
    let workflow = links::workflow_name(&job.workflow);
    Shell::new(visit, "Log", Some(Menu::Jobs))
        .under([
            Crumb::new(&workflow, links::workflow(&workflow)),
            Crumb::new(&job.scan, links::scan(&workflow, &job.scan)),
            Crumb::new(short_id(job.id), links::job(job.id)),
        ])
        .page(&content)
}

fn summary(page: &LogPage<'_>) -> Markup {
    let lines = count(page.job.log.records, "line", "lines");
    html! {
        @if let Some(total) = page.total {
            (count(total, "line", "lines")) " of " (grouped(page.job.log.records)) " " @if total == 1 { "contains" } @else { "contain" } " “" (page.query) "”."
        } @else if let Some(step) = page.step {
            "Step " (u64::from(step) + 1) " of the job; the whole log has " (lines) ". "
            a href=(links::job_log(page.job.id)) { "All lines" }
        } @else {
            (lines) "."
        }
    }
}

fn line(job: &Job, record: &LogRecord) -> Markup {
    let number = record.n.saturating_add(1);
    let stream = record.record.stream;
    let is_overwritten = record.record.text.ends_with(OVERWRITTEN);
    html! {
        div.line.stderr[stream == Stream::Stderr].runner[stream == Stream::Runner].a2[is_overwritten] {
            a href={ (links::job(job.id)) "#L" (number) } aria-label={ "Line " (number) } { (number) }
            time datetime=(record.record.at.to_rfc3339()) title=(record.record.at) data-time="clock" { (record.record.at.format("%H:%M:%S")) }
            span.t {
                @if stream == Stream::Stderr { span.visually-hidden { "standard error: " } }
                @if is_overwritten { span.visually-hidden { "overwritten: " } }
                (plain(&record.record.text))
            }
        }
    }
}

/// Removes terminal escape sequences.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\u{1b}' => match rest.next_if(|letter| (' '..='~').contains(letter)) {
                Some('[') => {
                    rest.by_ref().find(|letter| ('@'..='~').contains(letter));
                }
                // Drop also the terminator: BEL, or another sequence.
                Some(']') => {
                    while rest
                        .next_if(|letter| !matches!(letter, '\u{7}' | '\u{1b}'))
                        .is_some()
                    {}
                }
                Some(' '..='/') => {
                    while rest
                        .next_if(|letter| (' '..='/').contains(letter))
                        .is_some()
                    {}
                    rest.next_if(|letter| ('0'..='~').contains(letter));
                }
                Some(_) | None => {}
            },
            '\t' | '\n' => plain.push(letter),
            letter if letter.is_control() => {}
            letter => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn terminal_sequences_are_removed() {
        for (text, expected) in [
            ("plain", "plain"),
            ("\u{1b}[31mred\u{1b}[0m end", "red end"),
            ("\u{1b}]8;;https://example.org\u{7}link", "link"),
            ("\u{1b}]8;;https://example.org\u{1b}\\link", "link"),
            ("\u{1b}]0;title\u{1b}[31mred", "red"),
            ("\u{1b}(Bplain\u{1b}7\u{1b}8", "plain"),
            ("cut \u{1b}[3", "cut "),
            ("a\tb\r", "a\tb"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
