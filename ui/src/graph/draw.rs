//! The graph as SVG. All styles come from classes, because the pages forbid style attributes.

use std::fmt::Write as _;

use maud::{Markup, html};
use wire::{How, JobState};

use super::layout::layout;
use super::shape::{Area, Layout, Point, Route, Shape, Size};
use super::{Edge, Node, links};
use crate::chart::mini_bars;
use crate::words::count;

const NARROWEST: usize = 228;
const WIDEST: usize = 340;
/// The height of a node that has only its name.
const HEAD_HEIGHT: usize = 40;
const FIRST_LINE_HEIGHT: usize = 28;
const LINE_HEIGHT: usize = 18;
/// The most lines of a node.
const MOST_LINES: usize = 4;
/// Widths of a letter, in the bold name and in the lines; enough for most system fonts.
const NAME_LETTER: usize = 8;
const LINE_LETTER: usize = 7;
/// Width of both icons and the margins beside the name.
const BESIDE_NAME: usize = 72;
const MOST_BARS: usize = 9;
const ARROW: i64 = 7;
/// Longer labels are cut.
const LABEL_LETTERS: usize = 14;
/// Width of a letter in the font of labels.
const LABEL_LETTER: i64 = 7;
const BESIDE_LABEL: i64 = 12;
const LABEL_HEIGHT: i64 = 18;

/// A graph up to this width is shrunk to its frame; a wider one scrolls.
const MOST_TO_FIT: i64 = 1_450;

pub fn draw(nodes: &[Node], edges: &[Edge]) -> Markup {
    let (links, edges) = links(nodes, edges);
    let sizes: Vec<Size> = nodes.iter().map(size).collect();
    let layout = layout(&sizes, &links);
    let (width, height) = (layout.width, layout.height);
    html! {
        div.graph tabindex="0" role="region" aria-label="Graph, scrolls sideways" {
            svg.fits[width <= MOST_TO_FIT] width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) }
                role="group" aria-label=(label(nodes, edges.len())) {
                @for route in &layout.routes {
                    (edge(edges[route.link], route, nodes[links[route.link].to].state))
                }
                @for label in labels(&layout, &edges) {
                    (drawn(&label))
                }
                @for (item, area) in nodes.iter().zip(&layout.nodes) {
                    (node(item, *area))
                }
            }
        }
    }
}

/// A label with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Label {
    text: String,
    middle: Point,
    width: i64,
}

impl Label {
    /// Places the label on the last gap between columns, near the reading scan.
    fn on(route: &Route, asks: &str) -> Option<Self> {
        let (from, to) = match (route.shape, route.points.as_slice()) {
            (Shape::Loop, _) => return None,
            (Shape::Forward | Shape::Back, [.., from, to]) => (from, to),
            (Shape::Forward | Shape::Back, _) => return None,
        };
        let text: String = asks.chars().take(LABEL_LETTERS).collect();
        let letters = i64::try_from(text.chars().count()).unwrap_or(0);
        Some(Self {
            text,
            middle: Point {
                x: i64::midpoint(from.x, to.x),
                y: i64::midpoint(from.y, to.y),
            },
            width: letters * LABEL_LETTER + BESIDE_LABEL,
        })
    }

    /// True if the labels overlap.
    fn touches(&self, other: &Self) -> bool {
        let (across, down) = (
            (self.middle.x - other.middle.x).abs(),
            (self.middle.y - other.middle.y).abs(),
        );
        across * 2 < self.width + other.width && down < LABEL_HEIGHT
    }
}

/// The labels of edges. An overlapping label is left out; the title of the edge has the same text.
fn labels(layout: &Layout, edges: &[&Edge]) -> Vec<Label> {
    let mut labels: Vec<Label> = Vec::new();
    for route in &layout.routes {
        let asks = edges[route.link].asks.as_deref();
        if let Some(label) = asks.and_then(|asks| Label::on(route, asks))
            && !labels.iter().any(|other| other.touches(&label))
        {
            labels.push(label);
        }
    }
    labels
}

fn drawn(label: &Label) -> Markup {
    let Point { x, y } = label.middle;
    html! {
        g aria-hidden="true" {
            rect.box x=(x - label.width / 2) y=(y - LABEL_HEIGHT / 2) width=(label.width) height=(LABEL_HEIGHT) rx="9" {}
            text.sub text-anchor="middle" x=(x) y=(y + 4) { (label.text) }
        }
    }
}

fn label(nodes: &[Node], edges: usize) -> String {
    format!(
        "Graph of scans, who starts whom: {} and {}. The list of scans has the same.",
        count(nodes.len() as u64, "scan", "scans"),
        count(edges as u64, "edge", "edges")
    )
}

fn size(node: &Node) -> Size {
    let name = node.name.chars().count() * NAME_LETTER + BESIDE_NAME;
    let height = match lines(node).count().min(MOST_LINES) {
        0 if node.history.is_empty() => HEAD_HEIGHT,
        lines => HEAD_HEIGHT + FIRST_LINE_HEIGHT + lines.saturating_sub(1) * LINE_HEIGHT,
    };
    let pixels = |length| i64::try_from(length).unwrap_or(i64::MAX);
    Size {
        width: pixels(name.clamp(NARROWEST, WIDEST)),
        height: pixels(height),
    }
}

/// The lines below the name. A suspension comes first, so that it is never cut.
fn lines(node: &Node) -> impl Iterator<Item = &str> {
    let suspended = node.is_suspended.then_some("suspended");
    let others = node.lines.iter().map(String::as_str);
    suspended.into_iter().chain(others)
}

fn node(node: &Node, area: Area) -> Markup {
    let state = node.state.map_or("never", JobState::as_str);
    let suspended = if node.is_suspended { " suspended" } else { "" };
    let width = usize::try_from(area.width).unwrap_or(0);
    let name = cut(&node.name, (width - BESIDE_NAME.min(width)) / NAME_LETTER);
    let label = std::iter::once(node.name.as_str())
        .chain(lines(node))
        .chain([node.state.map_or("never ran", JobState::as_str)])
        .collect::<Vec<_>>()
        .join(", ");
    let history = &node.history[node.history.len().saturating_sub(MOST_BARS)..];
    let bars_width = history.len() * 7;
    html! {
        a href=(node.href) {
            title { (label) }
            // The title is the name of the link. It has the same content in a better order for screen readers.
            g class={ "node " (state) (suspended) } aria-hidden="true" transform={ "translate(" (area.x) " " (area.y) ")" } {
                rect.box width=(area.width) height=(area.height) rx="9" {}
                @if let Some(state) = node.state {
                    g class={ "state " (state.as_str()) } transform="translate(12 12)" { (icon(state.as_str())) }
                }
                text.name x="36" y="25" { (name) }
                @if let Some(trigger) = node.trigger {
                    g.glyph transform={ "translate(" (area.width - 28) " 12)" } { (icon(trigger.as_str())) }
                }
                @for (index, line) in lines(node).take(MOST_LINES).enumerate() {
                    @let taken = if index == 0 { bars_width + 8 } else { 0 };
                    text.sub x="12" y=(53 + index * LINE_HEIGHT) {
                        (cut(line, width.saturating_sub(24 + taken) / LINE_LETTER))
                    }
                }
                @if !history.is_empty() {
                    g transform={ "translate(" (width.saturating_sub(bars_width + 12)) " 40)" } { (mini_bars(history)) }
                }
            }
        }
    }
}

/// Cuts a text to `most` characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

fn edge(edge: &Edge, route: &Route, reader: Option<JobState>) -> Markup {
    let is_start = edge.how == How::Starts;
    let what = match (is_start, route.shape) {
        (true, _) => match &edge.asks {
            Some(asks) => format!("a success of {} may start {}: {asks}", edge.from, edge.to),
            None => format!("a success of {} may start {}", edge.from, edge.to),
        },
        (false, Shape::Loop) => format!("{} reads its own past", edge.to),
        (false, _) => format!("{} reads results of {}", edge.to, edge.from),
    };
    let mut class = String::from(if is_start { "starts" } else { "reads" });
    if route.shape != Shape::Forward {
        class.push_str(" back");
    }
    if is_start && reader == Some(JobState::Running) {
        class.push_str(" live");
    }
    html! {
        g {
            title { (what) }
            path class={ "edge " (class) } d=(line(route)) {}
            @if let Some(head) = head(route) {
                path class={ "head " (class) } d=(head) {}
            }
        }
    }
}

/// The line of an edge. It ends within the arrow, which keeps the tip sharp.
fn line(route: &Route) -> String {
    let mut line = String::new();
    let points = &route.points;
    let last = points.len().saturating_sub(1);
    if route.shape == Shape::Loop {
        if let [start, first, second, end] = points[..] {
            let end_y = end.y - ARROW + 1;
            let _ = write!(
                line,
                "M{} {}C{} {} {} {} {} {end_y}",
                start.x, start.y, first.x, first.y, second.x, second.y, end.x
            );
        }
        return line;
    }
    let mut from: Option<Point> = None;
    for (index, &point) in points.iter().enumerate() {
        let mut to = point;
        if index == last {
            to.x += match route.shape {
                Shape::Back => ARROW - 1,
                Shape::Forward | Shape::Loop => 1 - ARROW,
            };
        }
        let _ = match from {
            None => write!(line, "M{} {}", to.x, to.y),
            // Within a bend, or horizontal.
            Some(from) if index % 2 == 0 || from.y == to.y => write!(line, "L{} {}", to.x, to.y),
            Some(from) => {
                let middle = i64::midpoint(from.x, to.x);
                write!(
                    line,
                    "C{middle} {} {middle} {} {} {}",
                    from.y, to.y, to.x, to.y
                )
            }
        };
        from = Some(to);
    }
    line
}

/// The arrow at the end of an edge. A marker would need an id that is unique in the page.
fn head(route: &Route) -> Option<String> {
    let Point { x, y } = *route.points.last()?;
    Some(match route.shape {
        Shape::Forward => format!("M{x} {y}l-7-4v8z"),
        Shape::Back => format!("M{x} {y}l7-4v8z"),
        Shape::Loop => format!("M{x} {y}l-4-7h8z"),
    })
}

/// An icon with its own size. The style sheet sets the size only outside of drawings.
fn icon(name: &str) -> Markup {
    html! { svg.icon width="16" height="16" aria-hidden="true" { use href={ "#i-" (name) } {} } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_labels_are_detected() {
        let at = |x, y| Label {
            text: "has_diff".to_owned(),
            middle: Point { x, y },
            width: 68,
        };
        assert!(at(0, 0).touches(&at(60, 17)));
        assert!(!at(0, 0).touches(&at(60, 18)));
        assert!(!at(0, 0).touches(&at(68, 0)));
    }
}
