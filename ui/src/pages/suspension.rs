//! Suspension and resumption, for the pages of workflows and scans.

use maud::{Markup, html};
use wire::{Resumption, Scope, SuspendedPart, Suspension};

use crate::form::{self, Field, Refused};
use crate::links;
use crate::shell::Visit;
use crate::words::at;

/// The most characters of a reason.
const REASON_CHARS: u64 = 500;

/// The banner of a suspension. On the page of a scan, `workflow` is the name of its workflow, which may be suspended
/// instead.
pub(super) fn banner(suspended: Option<&Suspension>, workflow: Option<&str>) -> Markup {
    html! {
        @if let Some(Suspension { part, since, by, reason }) = suspended {
            div.banner role="note" {
                p {
                    b {
                        @match (part, workflow) {
                            (SuspendedPart::Workflow, Some(name)) => {
                                "Suspended with " a href=(links::workflow(name)) { (name) }
                            }
                            (SuspendedPart::Workflow, None) | (SuspendedPart::Scan, _) => { "Suspended" }
                        }
                    }
                    " since " (at(*since)) " by " (by) ": " (reason) ". It starts no jobs."
                }
            }
        }
    }
}

/// The banner that says that a dispatch is refused, with a link to the page that resumes the scan.
pub(super) fn no_dispatch(suspension: &Suspension, workflow: &str, scan: &str) -> Markup {
    let Suspension {
        part,
        since,
        by,
        reason,
    } = suspension;
    html! {
        div.banner role="note" {
            p {
                b { "Suspended" } " since " (at(*since)) " by " (by) ": " (reason) ". No job starts until "
                @match part {
                    SuspendedPart::Workflow => { "the workflow " a href=(links::workflow(workflow)) { (workflow) } }
                    SuspendedPart::Scan => { "the scan " a href=(links::scan(workflow, scan)) { (scan) } }
                }
                " is resumed."
            }
        }
    }
}

/// A sentence about the latest resumption.
pub(super) fn resumed(resumed: Option<&Resumption>) -> Markup {
    html! {
        @if let Some(Resumption { at: moment, by, reason }) = resumed {
            " Resumed " (at(*moment)) " by " (by)
            @if let Some(reason) = reason { ": " (reason) }
            "."
        }
    }
}

/// The form that suspends or resumes a workflow or scan. [`links::suspend`] says what `part` is.
pub(super) fn toggle(visit: &Visit, project: &str, part: &str, is_suspended: bool) -> Markup {
    let field = Field::new("reason", "Why, in one line")
        .of("suspension")
        .at_most(REASON_CHARS);
    let refused = Refused::default();
    let text = |field: &Field<'_>| field.input("text", "", &refused);
    html! {
        @if !visit.may_in(project, Scope::WorkflowSuspend) {
        } @else if is_suspended {
            (form::disclosed(visit, &links::resume(part), "Resume",
                "Its schedules catch up as configured, and its expressions are evaluated once for what they missed.",
                &text(&field)))
        } @else {
            (form::guarded_with(visit, &links::suspend(part), "Suspend",
                "It starts no jobs until it is resumed. Running jobs continue. Jobs that were dispatched before wait; new dispatches are refused.",
                &text(&field.required())))
        }
    }
}
