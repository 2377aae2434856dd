//! Layered layout of a directed graph that may have cycles. Edges lead from left to right.
//!
//! All lengths are whole pixels, so the layout is the same on every machine.

use super::order::order;
use super::place::place;
use super::rank::{back_edges, ranks};
use super::route::{Stops, loop_points, points};
use super::shape::{Area, Layers, Layout, Link, MARGIN, Point, Route, Shape, Size};

const COLUMN_GAP: i64 = 104;
/// Between the rows of nodes without edges.
const GRID_GAP: i64 = 24;
const BEND_HEIGHT: i64 = 8;
/// Above a node with an edge to itself.
const LOOP_HEIGHT: i64 = 20;
/// Larger nodes are cut, so that sums do not overflow.
const LARGEST: i64 = 4_000;
/// The most bends, which limits the work. Further edges pass behind the nodes; nobody could follow so many edges.
const MOST_BENDS: usize = 3_000;

/// Places the nodes and routes the edges.
pub fn layout(sizes: &[Size], links: &[Link]) -> Layout {
    let count = sizes.len();
    let (indexes, valid): (Vec<usize>, Vec<Link>) = links
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, link)| link.from < count && link.to < count)
        .unzip();
    let back = back_edges(count, &valid);
    let forward: Vec<Link> = valid.iter().zip(&back).map(turned).collect();
    let rank = ranks(count, &forward);
    let (mut layers, bends) = layers(sizes, &forward, &rank);
    order(&mut layers);
    let middles = place(&layers);
    let columns = columns(sizes, &layers);
    let mut nodes = areas(sizes, &forward, &layers, &columns, &middles);
    let shift = shift(&layers, &middles);
    for node in &mut nodes {
        node.y += shift;
    }
    let bottom = items(&layers).map(|item| middles[item] + layers.heights[item] / 2 + shift);
    place_single_nodes(&mut nodes, &forward, &layers, bottom.max());
    let stops = Stops::new(&nodes, &valid, &back);
    let routes: Vec<Route> = indexes
        .into_iter()
        .enumerate()
        .map(|(position, link)| {
            let ends = valid[position];
            let (shape, points) = if ends.from == ends.to {
                (Shape::Loop, loop_points(nodes[ends.from]))
            } else {
                let through = bends[position].iter().map(|&(column, bend)| {
                    let (x, width) = columns[column];
                    let y = middles[bend] + shift;
                    [Point { x, y }, Point { x: x + width, y }]
                });
                let is_back = back[position];
                let shape = if is_back { Shape::Back } else { Shape::Forward };
                let (start, end) = stops.of(position);
                (shape, points(start, end, through, is_back))
            };
            Route {
                link,
                shape,
                points,
            }
        })
        .collect();
    let corners = nodes.iter().map(|node| Point {
        x: node.x + node.width,
        y: node.y + node.height,
    });
    let everything = corners.chain(routes.iter().flat_map(|route| route.points.iter().copied()));
    let (width, height) = everything.fold((0, 0), |(width, height), point| {
        (width.max(point.x), height.max(point.y))
    });
    Layout {
        nodes,
        routes,
        width: width + MARGIN,
        height: height + MARGIN,
    }
}

const fn turned((link, is_back): (&Link, &bool)) -> Link {
    match *is_back {
        true => Link {
            from: link.to,
            to: link.from,
        },
        false => *link,
    }
}

/// The column and the number of a bend.
type Bend = (usize, usize);

/// The columns with all linked nodes, and the bends of each edge from left to right.
fn layers(sizes: &[Size], forward: &[Link], rank: &[usize]) -> (Layers, Vec<Vec<Bend>>) {
    let count = sizes.len();
    let mut is_linked = vec![false; count];
    let mut has_loop = vec![false; count];
    for link in forward {
        if link.from == link.to {
            has_loop[link.from] = true;
        } else {
            is_linked[link.from] = true;
            is_linked[link.to] = true;
        }
    }
    let last = rank.iter().max().map_or(0, |last| last + 1);
    let mut columns = vec![Vec::new(); last];
    for node in (0..count).filter(|&node| is_linked[node]) {
        columns[rank[node]].push(node);
    }
    // The longest path has a node in each column. Without edges there is one empty column.
    columns.retain(|column| !column.is_empty());
    let heights = sizes.iter().zip(&has_loop).map(|(size, &has_loop)| {
        let room = if has_loop { LOOP_HEIGHT } else { 0 };
        // Even, so that the middle is a whole number.
        (cut(size.height) + room + 1) / 2 * 2
    });
    let mut layers = Layers {
        columns,
        before: vec![Vec::new(); count],
        after: vec![Vec::new(); count],
        heights: heights.collect(),
        nodes: count,
    };
    // Short edges first: if the bends run out, the longest edges have none.
    let mut shortest_first: Vec<usize> = (0..forward.len()).collect();
    let span = |link: &Link| rank[link.to].saturating_sub(rank[link.from]);
    shortest_first.sort_by_key(|&edge| span(&forward[edge]));
    let mut bends = vec![Vec::new(); forward.len()];
    for edge in shortest_first {
        let link = forward[edge];
        let needed = span(&link).saturating_sub(1);
        if link.from == link.to || layers.heights.len() - count + needed > MOST_BENDS {
            continue;
        }
        let mut previous = link.from;
        for column in rank[link.from] + 1..rank[link.to] {
            let bend = layers.heights.len();
            layers.heights.push(BEND_HEIGHT);
            layers.before.push(vec![previous]);
            layers.after.push(Vec::new());
            layers.after[previous].push(bend);
            layers.columns[column].push(bend);
            bends[edge].push((column, bend));
            previous = bend;
        }
        layers.after[previous].push(link.to);
        layers.before[link.to].push(previous);
    }
    (layers, bends)
}

fn cut(length: i64) -> i64 {
    length.clamp(2, LARGEST)
}

/// The left edge and the width of each column.
fn columns(sizes: &[Size], layers: &Layers) -> Vec<(i64, i64)> {
    let mut x = MARGIN;
    layers
        .columns
        .iter()
        .map(|column| {
            let nodes = column.iter().filter(|&&item| item < layers.nodes);
            let width = nodes.map(|&node| cut(sizes[node].width)).max().unwrap_or(0);
            let left = x;
            x += width + COLUMN_GAP;
            (left, width)
        })
        .collect()
}

/// The areas of the nodes, before the drawing is moved down to its margin.
fn areas(
    sizes: &[Size],
    forward: &[Link],
    layers: &Layers,
    columns: &[(i64, i64)],
    middles: &[i64],
) -> Vec<Area> {
    let mut areas: Vec<Area> = sizes
        .iter()
        .map(|size| Area {
            x: MARGIN,
            y: 0,
            width: cut(size.width),
            height: cut(size.height),
        })
        .collect();
    for (column, &(x, width)) in layers.columns.iter().zip(columns) {
        for &node in column.iter().filter(|&&item| item < layers.nodes) {
            let area = &mut areas[node];
            area.x = x + (width - area.width) / 2;
            area.y = middles[node] - layers.heights[node] / 2;
        }
    }
    for node in with_loop(forward) {
        areas[node].y += LOOP_HEIGHT;
    }
    areas
}

/// The nodes with an edge to themselves.
fn with_loop(links: &[Link]) -> Vec<usize> {
    let loops = links.iter().filter(|link| link.from == link.to);
    let mut nodes: Vec<usize> = loops.map(|link| link.from).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

fn items(layers: &Layers) -> impl Iterator<Item = usize> {
    layers.columns.iter().flatten().copied()
}

/// The distance by which all columns move down to start at the margin.
fn shift(layers: &Layers, middles: &[i64]) -> i64 {
    let top = items(layers).map(|item| middles[item] - layers.heights[item] / 2);
    MARGIN - top.min().unwrap_or(0)
}

/// Places nodes without edges in rows below the columns, which keeps the columns short.
fn place_single_nodes(nodes: &mut [Area], forward: &[Link], layers: &Layers, bottom: Option<i64>) {
    let mut is_single = vec![true; nodes.len()];
    for item in items(layers) {
        if let Some(single) = is_single.get_mut(item) {
            *single = false;
        }
    }
    let singles: Vec<usize> = (0..nodes.len()).filter(|&node| is_single[node]).collect();
    let loops = with_loop(forward);
    let width = singles.iter().map(|&node| nodes[node].width).max();
    let Some(width) = width else { return };
    let used = layers.columns.len();
    let per_row = used.max(singles.len().isqrt()).max(4);
    let mut y = bottom.map_or(MARGIN, |bottom| bottom + GRID_GAP);
    for row in singles.chunks(per_row) {
        let room = |node: usize| match loops.binary_search(&node) {
            Ok(_) => LOOP_HEIGHT,
            Err(_) => 0,
        };
        let height = row.iter().map(|&node| room(node) + nodes[node].height);
        let height = height.max().unwrap_or(0);
        let mut x = MARGIN;
        for &node in row {
            nodes[node].x = x;
            nodes[node].y = y + room(node);
            x += width + COLUMN_GAP;
        }
        y += height + GRID_GAP;
    }
}
