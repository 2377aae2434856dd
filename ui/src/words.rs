//! Values as text: states as a word with a shape and a colour, and the sentences, amounts and times of the modules
//! below.

mod amounts;
mod sentences;
mod times;

use maud::{Markup, html};
use uuid::Uuid;
use wire::{Explanation, JobState, Trigger};

pub use amounts::{bytes, count, grouped, hits, percent_of};
pub use sentences::{
    attempt, cause, causes, circle_sentence, job_sentence, outcome_of, retry_sentence, sent,
    short_commit, waits_for_its_time, waits_since, what_it_waits_for,
};
pub use times::{
    ago, ago_text, at, between, date, duration, in_future, running_for, seconds, usual,
};

/// The file of a repository that is not a workflow.
pub const SETTINGS_FILE: &str = "everscan.yaml";

use crate::links;

/// An icon of the page's sprite. Screen readers skip it, because it has a word next to it.
pub fn icon(name: &str) -> Markup {
    html! { svg.icon aria-hidden="true" { use href={ "#i-" (name) } {} } }
}

/// A state as shape, colour and word.
pub fn state(state: JobState) -> Markup {
    condition(state.as_str(), state.as_str())
}

/// A good, bad or unknown condition: its own word, in the shape and colour of `state`.
pub fn condition(state: &str, word: &str) -> Markup {
    html! { span.state.(state) { (icon(state)) span { (word) } } }
}

/// A state as a label.
pub fn badge(state: JobState) -> Markup {
    html! { span.state.badge.(state.as_str()) { (icon(state.as_str())) span { (state.as_str()) } } }
}

/// A state without a visible word, where the text around it is clear. Screen readers get the word.
pub fn state_icon(state: &str) -> Markup {
    html! { span.state.(state) { (icon(state)) span.visually-hidden { (state) } } }
}

/// A message as a sentence: with a full stop, and a capital letter unless it begins with an address.
pub fn sentence(message: &str) -> String {
    let word = message.split(' ').next().unwrap_or_default();
    let mut letters = message.chars();
    let mut sentence: String = match word.contains("://") {
        true => letters.collect(),
        false => {
            let first = letters.next().into_iter().flat_map(char::to_uppercase);
            first.chain(letters).collect()
        }
    };
    if !sentence.ends_with(['.', '!', '?']) {
        sentence.push('.');
    }
    sentence
}

/// A message. Parts between backticks become code.
pub fn with_code(message: &str) -> Markup {
    let parts: Vec<&str> = message.split('`').collect();
    // An unmatched backtick is an ordinary character.
    if parts.len().is_multiple_of(2) {
        return html! { (message) };
    }
    html! {
        @for (place, part) in parts.iter().enumerate() {
            @if place % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// An explanation. Ids of jobs in it become links.
pub fn explained(explanation: &Explanation) -> Markup {
    linked(&explanation.message, &explanation.jobs)
}

/// A text in which the ids of these jobs become links. Jobs that do not appear in it are ignored.
pub fn linked(text: &str, jobs: &[Uuid]) -> Markup {
    let Some((job, others)) = jobs.split_first() else {
        return with_code(text);
    };
    match text.split_once(&job.to_string()) {
        Some((before, after)) => {
            html! { (linked(before, others)) (job_link(*job)) (linked(after, others)) }
        }
        None => linked(text, others),
    }
}

pub fn trigger(trigger: Trigger) -> Markup {
    html! { span.trigger { (icon(trigger.as_str())) span { (trigger_word(trigger)) } } }
}

pub const fn trigger_word(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Dispatch => "by hand",
        Trigger::Cron => "schedule",
        Trigger::Expr => "expression",
        Trigger::Callback => "callback",
    }
}

/// The last eight characters of an id. The first eight are the same for all ids of a minute.
pub fn short_id(id: Uuid) -> String {
    let text = id.simple().to_string();
    text.get(24..).unwrap_or_default().to_owned()
}

/// A short id with the whole id in its title, and a button that copies it.
pub fn copied_id(id: Uuid) -> Markup {
    html! {
        span.tag { code title=(id) { (short_id(id)) } (copy_button(&id.to_string(), "Copy the id")) }
    }
}

/// A button that copies a text. It is visible only with scripts.
pub fn copy_button(text: &str, label: &str) -> Markup {
    html! { button.square type="button" data-copy=(text) aria-label=(label) { (icon("copy")) } }
}

pub fn job_link(id: Uuid) -> Markup {
    html! { a.mono href=(links::job(id)) title=(id) { (short_id(id)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_ids_of_one_minute_differ() {
        let id = Uuid::from_u128(0x0199_c3a2_0000_7000_8000_1234_abcd_7b1e);
        assert_eq!(short_id(id), "abcd7b1e");
        assert!(job_link(id).into_string().contains("title=\"0199c3a2-"));
    }

    #[test]
    fn a_message_becomes_a_sentence() {
        for (message, expected) in [
            ("the tip is active", "The tip is active."),
            ("Ünfinished.", "Ünfinished."),
            (
                "https://a.example: no answer",
                "https://a.example: no answer.",
            ),
            ("", "."),
        ] {
            assert_eq!(sentence(message), expected);
        }
    }

    #[test]
    fn text_between_backticks_is_code_and_never_markup() {
        for (message, expected) in [
            (
                "no `a<b>`: `c`",
                "no <code>a&lt;b&gt;</code>: <code>c</code>",
            ),
            ("one ` alone", "one ` alone"),
            (
                "`<script>alert(1)</script>` and ` alone",
                "`&lt;script&gt;alert(1)&lt;/script&gt;` and ` alone",
            ),
            (
                "`<script>` </code>` `",
                "<code>&lt;script&gt;</code> &lt;/code&gt;<code> </code>",
            ),
            ("<i>", "&lt;i&gt;"),
            ("", ""),
        ] {
            assert_eq!(with_code(message).into_string(), expected);
        }
    }

    #[test]
    fn jobs_in_an_explanation_are_links() {
        let [one, other, absent] = [1, 2, 3].map(Uuid::from_u128);
        let explanation = Explanation {
            code: "runners_busy".to_owned(),
            message: format!("`a` is busy with jobs {one}, {other} and <i>"),
            jobs: vec![other, absent, one],
        };
        let text = explained(&explanation).into_string();
        let link = |job| job_link(job).into_string();
        let expected = format!(
            "<code>a</code> is busy with jobs {}, {} and &lt;i&gt;",
            link(one),
            link(other)
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn a_state_is_shape_word_and_class() {
        let text = state(JobState::Failed).into_string();
        for part in ["i-failed", "class=\"state failed\"", ">failed<"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
