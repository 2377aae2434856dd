//! The slots of a runner that are in use.

use maud::{Markup, html};

use super::{pixels, share};

const STEP: i64 = 6;
const WIDTH: i64 = 4;
const HEIGHT: i64 = 12;
/// More bars are not counted at a glance: then one bar shows the share.
const MOST_BARS: usize = 16;

/// One small bar for each slot, filled if the slot is in use.
pub fn slots(used: usize, total: usize) -> Markup {
    let label = format!("{used} of {total} slots in use");
    let width = pixels(total.min(MOST_BARS)) * STEP;
    let filled = share(pixels(used), pixels(total), width - 2);
    html! {
        svg.slots role="img" aria-label=(label) width=(width) height=(HEIGHT)
            viewBox={ "0 0 " (width) " " (HEIGHT) } {
            title { (label) }
            @if total <= MOST_BARS {
                @for slot in 0..total {
                    rect class=(if slot < used { "used" } else { "free" })
                        x=(pixels(slot) * STEP) width=(WIDTH) height=(HEIGHT) rx="1" {}
                }
            } @else {
                rect.free width=(width - 2) height=(HEIGHT) rx="1" {}
                rect.used width=(filled) height=(HEIGHT) rx="1" {}
            }
        }
    }
}
