//! Jobs over time: a lane for each scan or workflow, and arrows from causes to effects.

use std::collections::BTreeMap;

use chrono::{DateTime, FixedOffset, Utc};
use maud::{Markup, html};
use uuid::Uuid;
use wire::{JobState, LedgerCause, LedgerOutcome, LedgerRecord};

use super::window::{Tick, Window, day_and_time};
use super::{Bar, Clock, count, job_link, pixels, share};

const WIDTH: i64 = 1_200;
/// Space for the names of the lanes. Longer names are cut.
const LEFT: i64 = 176;
const NAME_LENGTH: usize = 20;
/// Space for the right half of the last label.
const RIGHT: i64 = 44;
const PLOT: i64 = WIDTH - LEFT - RIGHT;
const TOP: i64 = 8;
const LANE_HEIGHT: i64 = 28;
const BAR_HEIGHT: i64 = 14;
/// Space for the labels of the ticks.
const FOOT: i64 = 24;
const NARROWEST: i64 = 3;
/// Narrower bars have no cross for a failure.
const CROSSED: i64 = 12;
/// Narrower boxes have no number.
const NUMBERED: i64 = 28;
/// Space for an arrow.
const ROOM: i64 = 9;
/// The most bars in a lane. Older jobs become boxes with a count, because many links make the page slow.
const MOST_BARS: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lane {
    pub name: String,
    /// The page of the scan or workflow.
    pub href: String,
    pub bars: Vec<Bar>,
    /// Slots of the schedule without a job.
    pub empty_slots: Vec<DateTime<Utc>>,
}

/// A job that made another job when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    pub cause: Uuid,
    pub effect: Uuid,
}

pub fn causes(records: &[LedgerRecord]) -> Vec<Cause> {
    records
        .iter()
        .filter_map(|record| match (&record.cause, &record.outcome) {
            (
                LedgerCause::Success { job: cause, .. } | LedgerCause::Failure { job: cause, .. },
                LedgerOutcome::Made { job: effect },
            ) => Some(Cause {
                cause: *cause,
                effect: *effect,
            }),
            _ => None,
        })
        .collect()
}

pub fn lanes(lanes: &[Lane], causes: &[Cause], window: Window, clock: Clock) -> Markup {
    let shown: Vec<Shown> = lanes.iter().map(|lane| Shown::new(lane, window)).collect();
    let ticks = window.ticks(clock.offset);
    let bottom = TOP + pixels(lanes.len()) * LANE_HEIGHT;
    let height = bottom + FOOT;
    let places = places(&shown);
    html! {
        div.lanes tabindex="0" role="region" aria-label="Timeline, scrolls sideways" {
            svg width=(WIDTH) height=(height) viewBox={ "0 0 " (WIDTH) " " (height) }
                role="group" aria-label=(label(&shown, window, clock.offset)) {
                (axis(&ticks, window, bottom))
                @for (lane, number) in lanes.iter().zip(0..) {
                    @let y = TOP + number * LANE_HEIGHT;
                    a href=(lane.href) {
                        title { (lane.name) }
                        text.lane x="0" y=(y + 18) { (cut(&lane.name)) }
                    }
                    path.rule d={ "M" (LEFT) " " (y + LANE_HEIGHT) "H" (LEFT + PLOT) } {}
                }
                @for cause in causes {
                    @if let (Some(from), Some(to)) = (places.get(&cause.cause), places.get(&cause.effect)) {
                        (arrow(*from, *to))
                    }
                }
                @for ((lane, shown), number) in lanes.iter().zip(&shown).zip(0..) {
                    (row(lane, shown, TOP + number * LANE_HEIGHT, window, clock))
                }
                @if window.contains(clock.now) && !lanes.is_empty() {
                    path.now d={ "M" (x(window, clock.now)) " " (TOP - 2) "V" (bottom + 2) } {}
                }
            }
        }
    }
}

/// The jobs of a lane within the window.
struct Shown<'a> {
    bars: Vec<(&'a Bar, Span)>,
    counts: Vec<Count>,
}

/// In pixels.
#[derive(Clone, Copy)]
struct Span {
    x: i64,
    width: i64,
}

/// Older jobs of a lane that started between two ticks.
struct Count {
    from: i64,
    span: Span,
    jobs: usize,
    failed: usize,
}

impl<'a> Shown<'a> {
    fn new(lane: &'a Lane, window: Window) -> Self {
        let is_in = |bar: &&Bar| bar.end >= window.from && bar.start <= window.until;
        let mut bars: Vec<&Bar> = lane.bars.iter().filter(is_in).collect();
        bars.sort_by_key(|bar| (bar.start, bar.job));
        let newest = bars.split_off(bars.len().saturating_sub(MOST_BARS));
        let spans = newest.into_iter().map(|bar| (bar, span(bar, window)));
        let newest: Vec<(&Bar, Span)> = spans.collect();
        let end = newest.first().map_or(LEFT + PLOT, |(_, span)| span.x);
        Self {
            bars: newest,
            counts: counts(&bars, window, end),
        }
    }

    fn jobs(&self) -> usize {
        self.bars.len() + self.counts.iter().map(|count| count.jobs).sum::<usize>()
    }

    fn failed(&self) -> usize {
        let bars = self.bars.iter();
        let failed = bars.filter(|(bar, _)| bar.state == JobState::Failed);
        failed.count() + self.counts.iter().map(|count| count.failed).sum::<usize>()
    }
}

/// Counts the older jobs, for boxes up to `end`, where the bars of the newer jobs begin.
fn counts(older: &[&Bar], window: Window, end: i64) -> Vec<Count> {
    let step = window.step();
    let mut counts: BTreeMap<i64, Count> = BTreeMap::new();
    for bar in older {
        let start = window.offset_of(bar.start).clamp(0, window.length());
        let from = start / step * step;
        let left = LEFT + share(from, window.length(), PLOT);
        let until = from.saturating_add(step);
        let right = end.min(LEFT + share(until, window.length(), PLOT));
        let entry = counts.entry(from).or_insert(Count {
            from,
            span: Span {
                x: left,
                width: (right - left).max(NARROWEST),
            },
            jobs: 0,
            failed: 0,
        });
        entry.jobs += 1;
        entry.failed += usize::from(bar.state == JobState::Failed);
    }
    counts.into_values().collect()
}

fn x(window: Window, at: DateTime<Utc>) -> i64 {
    LEFT + share(window.offset_of(at), window.length(), PLOT)
}

fn span(bar: &Bar, window: Window) -> Span {
    let (start, end) = (x(window, bar.start), x(window, bar.end));
    let width = (end - start).max(NARROWEST);
    Span {
        x: start.min(LEFT + PLOT - width),
        width,
    }
}

/// The bar of each job, and its vertical middle.
fn places(shown: &[Shown]) -> BTreeMap<Uuid, (Span, i64)> {
    let mut places = BTreeMap::new();
    for (lane, number) in shown.iter().zip(0..) {
        let middle = TOP + number * LANE_HEIGHT + LANE_HEIGHT / 2;
        for (bar, span) in &lane.bars {
            places.insert(bar.job, (*span, middle));
        }
    }
    places
}

fn axis(ticks: &[Tick], window: Window, bottom: i64) -> Markup {
    html! {
        @for tick in ticks {
            @let x = LEFT + share(tick.distance, window.length(), PLOT);
            path.rule d={ "M" (x) " " (TOP) "V" (bottom) } {}
            text x=(x) y=(bottom + 18) text-anchor="middle" data-clock=[tick.clock.map(|at| at.to_rfc3339())] { (tick.label) }
        }
    }
}

fn arrow((from, from_y): (Span, i64), (to, to_y): (Span, i64)) -> Markup {
    let end = to.x;
    // It starts at the end of the cause, or earlier if the effect is too near.
    let start = (from.x + from.width - 1).min(end - ROOM);
    let line = format!("M{start} {from_y}V{to_y}H{}", end - 4);
    html! {
        path.arc d=(line) {}
        path.head d={ "M" (end) " " (to_y) "l-5-3v6z" } {}
    }
}

fn row(lane: &Lane, shown: &Shown, y: i64, window: Window, clock: Clock) -> Markup {
    let top = y + (LANE_HEIGHT - BAR_HEIGHT) / 2;
    html! {
        @for count in &shown.counts {
            (count_box(lane, count, top, window, clock))
        }
        @for (bar, span) in &shown.bars {
            @let label = format!("{}, {}", lane.name, bar.label(clock));
            (job_link(bar, &label, &shape(bar.state, *span, top)))
        }
        @for slot in lane.empty_slots.iter().filter(|slot| window.contains(**slot)) {
            circle.slot cx=(x(window, *slot)) cy=(top + BAR_HEIGHT / 2) r="4" {
                title { (lane.name) ", slot without a job, " (day_and_time(*slot, clock.offset)) }
            }
        }
    }
}

fn count_box(lane: &Lane, count: &Count, top: i64, window: Window, clock: Clock) -> Markup {
    let Span { x, width } = count.span;
    let from = window.from.timestamp_millis().saturating_add(count.from);
    let from = DateTime::from_timestamp_millis(from).unwrap_or(window.from);
    html! {
        g.count {
            title {
                (lane.name) ", " (super::count(count.jobs, "older job")) ", " (count.failed) " failed, from "
                (day_and_time(from, clock.offset))
            }
            rect.failed[count.failed > 0] x=(x + 1) y=(top) width=((width - 2).max(1)) height=(BAR_HEIGHT) rx="3" {}
            @if width >= NUMBERED {
                text x=(x + width / 2) y=(top + 11) text-anchor="middle" { (count.jobs) }
            }
        }
    }
}

fn shape(state: JobState, span: Span, top: i64) -> Markup {
    let Span { x, width } = span;
    html! {
        rect class={ "j " (state.as_str()) } x=(x) y=(top) width=(width) height=(BAR_HEIGHT) rx="3" {}
        @if state == JobState::Failed && width >= CROSSED {
            path.cross d={ "M" (x + 3) " " (top + 4) "l6 6m0-6-6 6" } {}
        }
    }
}

fn label(shown: &[Shown], window: Window, offset: FixedOffset) -> String {
    let jobs = shown.iter().map(Shown::jobs).sum();
    let failed: usize = shown.iter().map(Shown::failed).sum();
    format!(
        "Timeline from {} to {}: {} in {}, {failed} failed",
        day_and_time(window.from, offset),
        day_and_time(window.until, offset),
        count(jobs, "job"),
        count(shown.len(), "lane"),
    )
}

fn cut(name: &str) -> String {
    if name.chars().count() <= NAME_LENGTH {
        return name.to_owned();
    }
    // Keep the end: workflows of one source differ there.
    let kept = name.chars().count() - (NAME_LENGTH - 1);
    format!("…{}", name.chars().skip(kept).collect::<String>())
}
