//! Small bars: the progress of a running job, and the used slots of a runner.

use maud::{Markup, html};

use super::{pixels, share};
use crate::words::seconds;

/// In units of the view box. The bar fills the width of its place.
const PROGRESS_WIDTH: i64 = 1_000;
const PROGRESS_HEIGHT: i64 = 4;

const SLOT_STEP: i64 = 6;
const SLOT_WIDTH: i64 = 4;
const SLOT_HEIGHT: i64 = 12;
/// Above this number of slots, one bar shows the share instead.
const MOST_BARS: usize = 16;

/// A bar that is full at the usual time. When a job takes longer, a mark shows the usual time. A script makes the bar
/// grow from `data-since` (the start, in milliseconds since 1970) and `data-usual` (in seconds).
pub fn progress(since_millis: i64, elapsed: i64, usual: Option<i64>) -> Markup {
    let elapsed = elapsed.max(0);
    let usual = usual.filter(|&usual| usual > 0);
    let (filled, mark) = match usual {
        None => (0, None),
        Some(usual) if elapsed <= usual => (share(elapsed, usual, PROGRESS_WIDTH), None),
        Some(usual) => (PROGRESS_WIDTH, Some(share(usual, elapsed, PROGRESS_WIDTH))),
    };
    let length = |seconds: i64| self::seconds(u64::try_from(seconds).unwrap_or(0));
    let label = match usual {
        None => format!("runs for {}, usual time unknown", length(elapsed)),
        Some(usual) => format!("runs for {}, usually {}", length(elapsed), length(usual)),
    };
    html! {
        svg.progress.over[mark.is_some()] role="img" aria-label=(label) width="100%" height=(PROGRESS_HEIGHT)
            viewBox={ "0 0 " (PROGRESS_WIDTH) " " (PROGRESS_HEIGHT) } preserveAspectRatio="none"
            data-since=(since_millis) data-usual=[usual] {
            title { (label) }
            rect.track width=(PROGRESS_WIDTH) height=(PROGRESS_HEIGHT) {}
            rect.running width=(filled) height=(PROGRESS_HEIGHT) {}
            @if let Some(mark) = mark {
                path.usual d={ "M" (mark) " 0V" (PROGRESS_HEIGHT) } {}
            }
        }
    }
}

/// One small bar for each slot. A used slot is filled.
pub fn slots(used: usize, total: usize) -> Markup {
    let label = format!("{used} of {total} slots in use");
    let width = pixels(total.min(MOST_BARS)) * SLOT_STEP;
    let filled = share(pixels(used), pixels(total), width - 2);
    html! {
        svg.slots role="img" aria-label=(label) width=(width) height=(SLOT_HEIGHT)
            viewBox={ "0 0 " (width) " " (SLOT_HEIGHT) } {
            title { (label) }
            @if total <= MOST_BARS {
                @for slot in 0..total {
                    rect class=(if slot < used { "used" } else { "free" })
                        x=(pixels(slot) * SLOT_STEP) width=(SLOT_WIDTH) height=(SLOT_HEIGHT) rx="1" {}
                }
            } @else {
                rect.free width=(width - 2) height=(SLOT_HEIGHT) rx="1" {}
                rect.used width=(filled) height=(SLOT_HEIGHT) rx="1" {}
            }
        }
    }
}
