//! Measures the layout of graphs: `cargo bench --package ui`. It fails if it exceeds one of its time limits.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ui::graph::{Edge, Layout, Link, Node, Size, draw, layout};
use wire::How;

const RUNS: usize = 50;

#[expect(clippy::print_stdout, reason = "the figures are the result")]
fn main() {
    for (nodes, links, budget) in [(30, 45, 1), (300, 450, 10)] {
        let (sizes, links) = graph(nodes, links);
        let layout_time = median(|| layout(&sizes, &links));
        let (shown, edges) = named(nodes, &links);
        let draw_time = median(|| draw(&shown, &edges));
        println!(
            "{nodes} scans, {} edges: layout {layout_time:?}, with drawing {draw_time:?}",
            links.len()
        );
        let budget = Duration::from_millis(budget);
        assert!(draw_time <= budget, "{nodes} scans took {draw_time:?}");
    }
    let (sizes, links) = graph(300, 2_000);
    let time = median(|| -> Layout { layout(&sizes, &links) });
    println!("300 scans, 2000 edges: layout {time:?}");
}

fn median<T>(run: impl Fn() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[RUNS / 2]
}

/// Most edges lead to a scan nearby, as in workflows; every tenth closes a cycle.
fn graph(nodes: usize, count: usize) -> (Vec<Size>, Vec<Link>) {
    let mut seed: usize = 0x2545_F491;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let size = Size {
        width: 196,
        height: 68,
    };
    let links = (0..count).map(|index| {
        let from = random(nodes - 1);
        let to = (from + 1 + random(nodes / 4)).min(nodes - 1);
        match index % 10 {
            0 => Link { from: to, to: from },
            _ => Link { from, to },
        }
    });
    (vec![size; nodes], links.collect())
}

fn named(nodes: usize, links: &[Link]) -> (Vec<Node>, Vec<Edge>) {
    let name = |number: usize| format!("scan-{number}");
    let nodes = (0..nodes).map(|number| Node {
        name: name(number),
        href: format!("/workflows/w/scans/{number}"),
        lines: vec!["6 min ago".to_owned()],
        ..Node::default()
    });
    let edges = links.iter().map(|link| Edge {
        from: name(link.from),
        to: name(link.to),
        how: How::Starts,
        asks: None,
    });
    (nodes.collect(), edges.collect())
}
