//! Icons within a drawing. Their shapes are symbols that each page has once.

use maud::{Markup, html};
use wire::{JobState, Trigger};

/// The icon of a state.
pub fn icon(state: JobState) -> Markup {
    symbol(state.as_str())
}

/// The icon of what starts a scan.
pub fn trigger_icon(trigger: Trigger) -> Markup {
    symbol(trigger.as_str())
}

fn symbol(name: &str) -> Markup {
    html! {
        svg.icon width="16" height="16" aria-hidden="true" { use href={ "#i-" (name) } {} }
    }
}
