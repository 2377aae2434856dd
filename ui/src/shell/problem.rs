//! The page of a refused or failed request.

use maud::{Markup, html};
use wire::{ErrorCode, Problem};

use super::{Crumb, Shell, Visit, heading};
use crate::words::with_code;
use crate::{form, links};

/// The problem, what to do next, and a way back. `back` is the previous page, if known, and `remedy` the page where
/// the reader can solve the problem.
pub fn problem_page(
    visit: &Visit,
    problem: &Problem,
    back: Option<&str>,
    remedy: Option<&Crumb>,
) -> Markup {
    let title = match problem.code {
        ErrorCode::NoSuchRoute => "There is no such page",
        _ => problem.title.as_str(),
    };
    let back = back.and_then(links::local);
    let content = html! {
        (heading(title, &html! { span.tag { (problem.status) } }, &html! {}))
        section.card.problem {
            div.body {
                p { (with_code(&problem.detail)) }
                @if let Some(hint) = &problem.hint { p { b { "What to do: " } (with_code(hint)) } }
                (form::other_problems(problem, &[]))
                @if let Some(id) = &problem.request_id {
                    p.small.muted {
                        "Request " code { (id) } "."
                        // The daemon logs failures, but no refusals.
                        @if problem.status >= 500 { " The daemon's log has more under this id." }
                    }
                }
                p.actions {
                    @if let Some(remedy) = remedy { a.button.first href=(remedy.link) { (remedy.label) } }
                    @if let Some(back) = back { a.button href=(back) { "Back" } }
                    @if visit.viewer.is_some() {
                        a.button href=(links::OVERVIEW) { "Overview" }
                    } @else {
                        a.button href=(links::LOGIN) { "Sign in" }
                    }
                }
            }
        }
    };
    Shell::new(visit, title, None).page(&content)
}
