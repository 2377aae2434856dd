//! Properties of the layout of every graph.

use std::ops::RangeInclusive;

use proptest::collection::vec;
use proptest::prelude::*;
use ui::graph::{Area, Edge, Layout, Link, Node, Point, Shape, Size, draw, edges, layout};
use wire::{How, Reading, Scan};

fn sizes(count: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<Size>> {
    let size = (1_i64..400, 1_i64..200).prop_map(|(width, height)| Size { width, height });
    vec(size, count)
}

/// Any edges, including edges to unknown nodes.
fn graphs(most_nodes: usize, most_links: usize) -> impl Strategy<Value = (Vec<Size>, Vec<Link>)> {
    let nodes: RangeInclusive<usize> = 0..=most_nodes;
    sizes(nodes).prop_flat_map(move |sizes| {
        let end = 0..=sizes.len() + usize::from(sizes.is_empty());
        let link = (end.clone(), end).prop_map(|(from, to)| Link { from, to });
        (Just(sizes), vec(link, 0..=most_links))
    })
}

fn overlaps(one: &Area, other: &Area) -> bool {
    one.x < other.x + other.width
        && other.x < one.x + one.width
        && one.y < other.y + other.height
        && other.y < one.y + one.height
}

fn is_on_border(point: Point, area: &Area) -> bool {
    let is_at_side = point.x == area.x || point.x == area.x + area.width;
    let is_at_top = point.y == area.y;
    let is_beside = (area.y..=area.y + area.height).contains(&point.y);
    let is_above = (area.x..=area.x + area.width).contains(&point.x);
    (is_at_side && is_beside) || (is_at_top && is_above)
}

fn check(sizes: &[Size], links: &[Link], found: &Layout) {
    assert_eq!(found.nodes.len(), sizes.len());
    for (index, node) in found.nodes.iter().enumerate() {
        assert!(node.x >= 0 && node.y >= 0, "{node:?}");
        assert!(node.x + node.width <= found.width, "{node:?}");
        assert!(node.y + node.height <= found.height, "{node:?}");
        for other in &found.nodes[..index] {
            assert!(!overlaps(node, other), "{node:?} overlaps {other:?}");
        }
    }
    let is_valid = |link: &Link| link.from < sizes.len() && link.to < sizes.len();
    let valid = links.iter().filter(|link| is_valid(link)).count();
    assert_eq!(found.routes.len(), valid);
    for route in &found.routes {
        let link = links[route.link];
        let (first, last) = (route.points[0], route.points[route.points.len() - 1]);
        assert!(is_on_border(first, &found.nodes[link.from]), "{route:?}");
        assert!(is_on_border(last, &found.nodes[link.to]), "{route:?}");
        assert_eq!(route.shape == Shape::Loop, link.from == link.to);
        for point in &route.points {
            assert!((0..=found.width).contains(&point.x), "{route:?}");
            assert!((0..=found.height).contains(&point.y), "{route:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn small_graphs_are_laid_out((sizes, links) in graphs(12, 24)) {
        let found = layout(&sizes, &links);
        check(&sizes, &links, &found);
        prop_assert_eq!(layout(&sizes, &links), found);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn large_graphs_are_laid_out((sizes, links) in graphs(300, 2_000)) {
        let found = layout(&sizes, &links);
        check(&sizes, &links, &found);
        prop_assert_eq!(layout(&sizes, &links), found);
    }
}

fn links(pairs: &[(usize, usize)]) -> Vec<Link> {
    let link = |&(from, to): &(usize, usize)| Link { from, to };
    pairs.iter().map(link).collect()
}

const BOX: Size = Size {
    width: 196,
    height: 68,
};

#[test]
fn the_longest_possible_edges_are_laid_out() {
    let chain = (1..300).map(|to| (to - 1, to));
    let long = (0..1_700).map(|index| (index % 150, 299 - index % 149));
    let links = links(&chain.chain(long).collect::<Vec<_>>());
    let sizes = [BOX; 300];
    check(&sizes, &links, &layout(&sizes, &links));
}

#[test]
fn extreme_sizes_are_cut() {
    let sizes = [i64::MIN, -1, 0, 1, i64::MAX].map(|length| Size {
        width: length,
        height: length,
    });
    let links = links(&[(0, 1), (1, 2), (2, 0), (3, 3), (4, 4), (0, 4)]);
    check(&sizes, &links, &layout(&sizes, &links));
}

#[test]
fn an_edge_that_closes_a_cycle_is_a_back_edge() {
    let found = layout(&[BOX; 3], &links(&[(0, 1), (1, 2), (2, 1)]));
    let shapes: Vec<Shape> = found.routes.iter().map(|route| route.shape).collect();
    assert_eq!(shapes, [Shape::Forward, Shape::Forward, Shape::Back]);
    let (forward, back) = (&found.routes[1].points, &found.routes[2].points);
    assert_ne!(forward[0].y, back[1].y, "separate ports");
    assert_ne!(forward[1].y, back[0].y, "separate ports");
    assert!(found.nodes[0].x < found.nodes[1].x && found.nodes[1].x < found.nodes[2].x);
}

#[test]
fn an_edge_past_a_node_avoids_it() {
    let found = layout(&[BOX; 3], &links(&[(0, 1), (1, 2), (0, 2)]));
    let between = found.nodes[1];
    let bends = &found.routes[2].points[1..3];
    for bend in bends {
        assert!(bend.y < between.y || bend.y > between.y + between.height);
    }
}

#[test]
fn a_parent_is_centred_on_its_children() {
    let found = layout(&[BOX; 3], &links(&[(0, 1), (0, 2)]));
    let middle = found.nodes[1].y + found.nodes[2].y;
    assert!((found.nodes[0].y * 2 - middle).abs() <= 2, "{found:?}");
}

fn scan(name: &str, reads: &[(&str, How)]) -> Scan {
    let reading = |&(scan, how): &(&str, How)| Reading {
        scan: scan.to_owned(),
        how,
    };
    Scan {
        name: name.to_owned(),
        cron: None,
        timezone: None,
        expr: None,
        callback: None,
        inputs: None,
        artifacts: Vec::new(),
        reads: reads.iter().map(reading).collect(),
        steps: 1,
        runs_on: Vec::new(),
        checkout: None,
        callback_server: None,
        retry: None,
    }
}

#[test]
fn edges_lead_from_the_scan_that_is_read_to_its_reader() {
    let scans = [
        scan("certs", &[]),
        scan(
            "hosts",
            &[
                ("certs", How::Reads),
                ("certs", How::Starts),
                ("hosts", How::Reads),
            ],
        ),
    ];
    let edge = |from: &str, to: &str, how| Edge {
        from: from.to_owned(),
        to: to.to_owned(),
        how,
        asks: None,
    };
    assert_eq!(
        edges(&scans),
        [
            edge("certs", "hosts", How::Starts),
            edge("hosts", "hosts", How::Reads)
        ]
    );
}

#[test]
fn names_are_text_and_edges_of_missing_scans_are_left_out() {
    let node = Node {
        name: "<script>\"&".to_owned(),
        href: "/workflows/w/scans/s".to_owned(),
        ..Node::default()
    };
    let edge = Edge {
        from: "gone".to_owned(),
        to: node.name.clone(),
        how: How::Starts,
        asks: None,
    };
    let markup = draw(&[node], &[edge]).into_string();
    assert!(!markup.contains("<script>"), "{markup}");
    assert!(!markup.contains("class=\"edge"), "{markup}");
    assert!(!draw(&[], &[]).into_string().is_empty());
}
