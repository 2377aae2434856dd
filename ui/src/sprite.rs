//! The drawings that pages and charts refer to with `<use href="#i-…">`. Each page has them once. They are part of the
//! page, not a file, because `use` with a foreign address cannot take the colours of the page.

use maud::{Markup, PreEscaped, html};

/// The name of each drawing and its content, in a square of 16.
const DRAWINGS: &[(&str, &str)] = &[
    (
        "succeeded",
        r##"<circle cx="8" cy="8" r="7" fill="currentColor" stroke="none"/><path d="m4.8 8.3 2.2 2.2 4.2-4.6" stroke="var(--surface)" stroke-width="1.9"/>"##,
    ),
    (
        "failed",
        r##"<path d="M8 .8 15.2 8 8 15.2.8 8z" fill="currentColor" stroke="none"/><path d="m5.8 5.8 4.4 4.4m0-4.4-4.4 4.4" stroke="var(--surface)" stroke-width="1.8"/>"##,
    ),
    (
        "running",
        r##"<circle cx="8" cy="8" r="6.2" opacity=".28" stroke-width="2.4"/><path class="turn" d="M8 1.8a6.2 6.2 0 0 1 6.2 6.2" stroke-width="2.4"/>"##,
    ),
    (
        "scheduled",
        r##"<circle cx="8" cy="8" r="6.3"/><path d="M8 4.6V8l2.3 1.6"/>"##,
    ),
    (
        "cancelled",
        r##"<circle cx="8" cy="8" r="6.3" stroke-width="2"/><path d="m3.8 12.2 8.4-8.4" stroke-width="2"/>"##,
    ),
    (
        "skipped",
        r##"<circle cx="8" cy="8" r="6.3" stroke-dasharray="2.4 2.4"/><path d="m6 5.6 2.4 2.4L6 10.4m3-4.8L11.4 8 9 10.4"/>"##,
    ),
    (
        "changed",
        r##"<path d="M2.6 6.2h10m-3-3 3 3M13.4 9.8h-10m3 3-3-3"/>"##,
    ),
    (
        "cron",
        r##"<circle cx="8" cy="8" r="6.3"/><path d="M8 4.6V8h2.8"/>"##,
    ),
    ("dispatch", r##"<path d="M4.5 2.8 12.5 8l-8 5.2z"/>"##),
    (
        "expr",
        r##"<path d="M11.5 2.6c-2.2-.9-3.4.4-3.8 2.9L6.6 11.2c-.4 2.2-1.5 2.9-3.1 2.2M4.8 7.2h5.4"/>"##,
    ),
    ("home", r##"<path d="M2.5 7.5 8 2.5l5.5 5v6h-11z"/>"##),
    (
        "flow",
        r##"<circle cx="3.5" cy="8" r="1.8"/><circle cx="12.5" cy="3.8" r="1.8"/><circle cx="12.5" cy="12.2" r="1.8"/><path d="m5.2 7.3 5.5-2.7M5.2 8.7l5.5 2.7"/>"##,
    ),
    ("jobs", r##"<path d="M2.5 4h11M2.5 8h11M2.5 12h7"/>"##),
    (
        "runner",
        r##"<rect x="2" y="3" width="12" height="8" rx="1.5"/><path d="M5.5 13.5h5"/>"##,
    ),
    (
        "source",
        r##"<circle cx="4.5" cy="3.8" r="1.6"/><circle cx="4.5" cy="12.2" r="1.6"/><circle cx="11.5" cy="5.5" r="1.6"/><path d="M4.5 5.5v5m0-1c0-2.5 7-1 7-2.5"/>"##,
    ),
    (
        "box",
        r##"<path d="M2.5 5 8 2.3 13.5 5v6L8 13.7 2.5 11zM2.5 5 8 7.8 13.5 5M8 7.8v6"/>"##,
    ),
    (
        "key",
        r##"<circle cx="5" cy="11" r="2.6"/><path d="m7 9 6-6m-2.5 2.5 1.8 1.8"/>"##,
    ),
    (
        "gear",
        r##"<circle cx="8" cy="8" r="2.3"/><path d="M8 1.8v2M8 12.2v2M1.8 8h2m8.4 0h2M3.6 3.6 5 5m6 6 1.4 1.4m0-8.8L11 5m-6 6-1.4 1.4"/>"##,
    ),
    (
        "search",
        r##"<circle cx="7" cy="7" r="4.3"/><path d="m10.3 10.3 3.2 3.2"/>"##,
    ),
    ("up", r##"<path d="m4 10 4-4 4 4"/>"##),
    ("down", r##"<path d="m4 6 4 4 4-4"/>"##),
    (
        "copy",
        r##"<rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/><path d="M10.5 3.5v-1h-8v8h1"/>"##,
    ),
    ("sheet", r##"<path d="M4 2h5.5L12.5 5v9H4zM9.5 2v3h3"/>"##),
    ("folder", r##"<path d="M1.8 3.5h4.4l1.6 2h6.4v7.5H1.8z"/>"##),
    (
        "vars",
        r##"<path d="M5.5 3C3 5.5 3 10.5 5.5 13m5-10c2.5 2.5 2.5 7.5 0 10M6.5 6.5l3 3.5m0-3.5-3 3.5"/>"##,
    ),
    (
        "list",
        r##"<path d="M3 2.5h10v11H3zM5.5 5.5h5m-5 2.5h5m-5 2.5h3"/>"##,
    ),
    (
        "info",
        r##"<circle cx="8" cy="8" r="6.3"/><path d="M8 7.2v3.8M8 4.9v.2"/>"##,
    ),
];

/// All drawings, out of sight.
pub(crate) fn sprite() -> Markup {
    html! {
        svg.sprite width="0" height="0" aria-hidden="true" {
            @for (name, drawing) in DRAWINGS {
                symbol id={ "i-" (name) } viewBox="0 0 16 16" { (PreEscaped(drawing)) }
            }
        }
    }
}
