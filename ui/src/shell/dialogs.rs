//! The dialogs that scripts open: the finder and the list of shortcuts.

use maud::{Markup, html};

/// The shortcuts, by the place where they work.
const SHORTCUTS: &[(&str, &[(&str, &str)])] = &[
    (
        "Everywhere",
        &[
            ("?", "this list"),
            ("Ctrl K or /", "find; in a log: search"),
            ("g o", "overview"),
            ("g w", "workflows"),
            ("g j", "jobs"),
            ("g r", "runners"),
            ("g s", "sources"),
        ],
    ),
    (
        "In a list or a page",
        &[
            ("j k", "next and previous row"),
            ("Enter", "open the row"),
            ("u", "the page above"),
            ("d", "dispatch"),
            (".", "actions of the page"),
        ],
    ),
    (
        "In a log",
        &[
            ("n N", "next and previous match"),
            ("f", "follow"),
            ("e", "next line on standard error"),
            ("w", "wrap lines"),
            ("t", "times"),
            ("gg G", "start and end"),
            ("y", "copy the link to the line"),
        ],
    ),
];

/// A script fills the list with pages, workflows, scans, runners and sources, or with the jobs whose ids begin or end
/// with the typed text.
pub(super) fn finder() -> Markup {
    html! {
        dialog #finder aria-labelledby="finder-title" {
            h2 #finder-title.visually-hidden { "Find" }
            input #finder-text type="text" role="combobox" autocomplete="off" spellcheck="false"
                aria-label="Name, or the id of a job" aria-expanded="true" aria-controls="finder-list"
                placeholder="Name, or the id of a job";
            ul #finder-list role="listbox" aria-label="Found" {}
            p #finder-none.muted hidden { "Nothing has this name." }
        }
    }
}

pub(super) fn shortcuts() -> Markup {
    html! {
        dialog #shortcuts aria-labelledby="shortcuts-title" {
            h2 #shortcuts-title { "Keyboard shortcuts" }
            @for (place, shortcuts) in SHORTCUTS {
                h3 { (place) }
                dl.keys {
                    @for (keys, action) in *shortcuts {
                        div { dt { kbd { (keys) } } dd { (action) } }
                    }
                }
            }
            form method="dialog" { button.button type="submit" { "Close" } }
        }
    }
}
