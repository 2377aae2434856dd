//! How far a running job is, against the usual time of its scan.

use maud::{Markup, html};

use super::{share, text};

/// In parts of the bar, which is as wide as its place.
const WIDTH: i64 = 1_000;
const HEIGHT: i64 = 4;

/// A bar that is full at the usual time. A job that takes longer fills it, and a mark then shows the usual time. A
/// script makes the bar grow: it sets the width from `data-since` (the start, in milliseconds since 1970) and
/// `data-usual` (in seconds).
pub fn progress(since_millis: i64, elapsed: i64, usual: Option<i64>) -> Markup {
    let elapsed = elapsed.max(0);
    let usual = usual.filter(|&usual| usual > 0);
    let (filled, mark) = match usual {
        None => (0, None),
        Some(usual) if elapsed <= usual => (share(elapsed, usual, WIDTH), None),
        Some(usual) => (WIDTH, Some(share(usual, elapsed, WIDTH))),
    };
    let label = match usual {
        None => format!("runs for {}, usual time unknown", text::duration(elapsed)),
        Some(usual) => format!(
            "runs for {}, usually {}",
            text::duration(elapsed),
            text::duration(usual)
        ),
    };
    html! {
        svg.progress.over[mark.is_some()] role="img" aria-label=(label) width="100%" height=(HEIGHT)
            viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none"
            data-since=(since_millis) data-usual=[usual] {
            title { (label) }
            rect.track width=(WIDTH) height=(HEIGHT) {}
            rect.running width=(filled) height=(HEIGHT) {}
            @if let Some(mark) = mark {
                path.usual d={ "M" (mark) " 0V" (HEIGHT) } {}
            }
        }
    }
}
