//! The points of edges, from the border of one node to the border of another.

use super::shape::{Area, Link, Point};

/// Between two edges that enter a node, if its side is long enough.
const PORT_GAP: i64 = 14;

/// The end of an edge of a node to itself, measured from the right end of the top.
const LOOP_END: i64 = 28;

/// The first and last point of each edge. Forward edges leave at the middle of the right side and are spread over the
/// left side of their target. Back edges have their own ports below these.
pub(super) struct Stops {
    starts: Vec<Point>,
    ends: Vec<Point>,
}

impl Stops {
    pub(super) fn new(nodes: &[Area], links: &[Link], back: &[bool]) -> Self {
        let starts = links.iter().zip(back).map(|(link, &is_back)| {
            let node = nodes[link.from];
            match is_back {
                true => left(node, back_port(node)),
                false => right(node, node.height / 2),
            }
        });
        let ends = links.iter().zip(back).map(|(link, &is_back)| {
            let node = nodes[link.to];
            match is_back {
                true => right(node, back_port(node)),
                false => left(node, node.height / 2),
            }
        });
        let mut stops = Self {
            starts: starts.collect(),
            ends: ends.collect(),
        };
        stops.spread(nodes, links, back);
        stops
    }

    pub(super) fn of(&self, link: usize) -> (Point, Point) {
        (self.starts[link], self.ends[link])
    }

    /// Spreads the edges that enter a node from the left, in the order of their origins, so that they do not cross.
    fn spread(&mut self, nodes: &[Area], links: &[Link], back: &[bool]) {
        let mut entering = vec![Vec::new(); nodes.len()];
        for (index, link) in links.iter().enumerate() {
            if link.from != link.to && !back[index] {
                entering[link.to].push(index);
            }
        }
        for (node, mut edges) in nodes.iter().zip(entering) {
            edges.sort_by_key(|&edge| self.starts[edge].y);
            // A quarter of the side stays free above and below.
            let gaps = i64::try_from(edges.len()).unwrap_or(i64::MAX) - 1;
            let height = (gaps.saturating_mul(PORT_GAP)).min(node.height / 2 - node.height / 8);
            for (edge, port) in edges.into_iter().zip(0_i64..) {
                let down = port * height / gaps.max(1);
                self.ends[edge].y = node.y + (node.height - height) / 2 + down;
            }
        }
    }
}

/// The ports below those of forward edges.
const fn back_port(node: Area) -> i64 {
    node.height - node.height / 6
}

const fn left(node: Area, down: i64) -> Point {
    Point {
        x: node.x,
        y: node.y + down,
    }
}

const fn right(node: Area, down: i64) -> Point {
    Point {
        x: node.x + node.width,
        y: node.y + down,
    }
}

/// The points of an edge. `through` has its bends from left to right.
pub(super) fn points(
    start: Point,
    end: Point,
    through: impl Iterator<Item = [Point; 2]>,
    is_back: bool,
) -> Vec<Point> {
    let mut bends: Vec<Point> = through.flatten().collect();
    if is_back {
        bends.reverse();
    }
    let mut points = Vec::with_capacity(bends.len() + 2);
    points.push(start);
    points.append(&mut bends);
    points.push(end);
    points
}

/// A loop over the upper right corner, as one cubic curve.
pub(super) fn loop_points(node: Area) -> Vec<Point> {
    let start = right(node, node.height / 4);
    let end_x = node.x + node.width - LOOP_END.min(node.width / 2);
    vec![
        start,
        Point {
            x: start.x + 24,
            y: start.y,
        },
        Point {
            x: end_x,
            y: node.y - super::shape::MARGIN * 2,
        },
        Point {
            x: end_x,
            y: node.y,
        },
    ]
}
