//! The graph of a workflow: which scan starts another scan or reads its results.
//!
//! The list of scans on the same page has the same content for screen readers.

mod draw;
mod layout;
mod order;
mod place;
mod rank;
mod route;
mod shape;

use std::collections::BTreeMap;

use wire::{How, JobState, Reading, Scan, Trigger};

pub use draw::draw;
pub use layout::layout;
pub use shape::{Area, Layout, Link, Point, Route, Shape, Size};

use crate::chart::Bar;

/// A scan in the graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    pub name: String,
    /// The page of the scan.
    pub href: String,
    /// Lines below the name, for example when it ran.
    pub lines: Vec<String>,
    /// The state of its newest job.
    pub state: Option<JobState>,
    /// True if the scan or its workflow is suspended.
    pub is_suspended: bool,
    pub trigger: Option<Trigger>,
    /// Its newest jobs, oldest first.
    pub history: Vec<Bar>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The scan whose results are read.
    pub from: String,
    /// The scan that reads them.
    pub to: String,
    pub how: How,
    /// The function that the expression calls on the scan, for example `has_diff`.
    pub asks: Option<String>,
}

/// The edges of a workflow, in the order of its file. If a scan both starts and feeds another scan, the graph has only the edge
/// of the start.
pub fn edges(scans: &[Scan]) -> Vec<Edge> {
    let mut edges = Vec::new();
    for scan in scans {
        for reading in &scan.reads {
            let is_start_too =
                |other: &Reading| other.scan == reading.scan && other.how == How::Starts;
            if reading.how == How::Starts || !scan.reads.iter().any(is_start_too) {
                edges.push(Edge {
                    from: reading.scan.clone(),
                    to: scan.name.clone(),
                    how: reading.how,
                    asks: called_function(scan, reading),
                });
            }
        }
    }
    edges
}

/// The first function that the expression of `scan` calls on the scan that it reads.
fn called_function(scan: &Scan, reading: &Reading) -> Option<String> {
    if reading.how != How::Starts {
        return None;
    }
    let expression = scan.expr.as_deref()?;
    let name = &reading.scan;
    let ways = [
        format!("scans.{name}."),
        format!("scans[\"{name}\"]."),
        format!("scans['{name}']."),
    ];
    let called = |way: &String| {
        let (_, after) = expression.split_once(way.as_str())?;
        let (function, _) = after.split_once('(')?;
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        (!function.is_empty() && function.chars().all(is_name)).then(|| function.to_owned())
    };
    ways.iter().find_map(called)
}

/// True if the scan has an edge to or from another scan.
pub fn has_neighbours(name: &str, edges: &[Edge]) -> bool {
    edges
        .iter()
        .any(|edge| (edge.from == name) != (edge.to == name))
}

/// Keeps a scan and the scans to which it has an edge.
pub fn neighbours(name: &str, nodes: Vec<Node>, edges: Vec<Edge>) -> (Vec<Node>, Vec<Edge>) {
    let touches = |edge: &Edge, name: &str| edge.from == name || edge.to == name;
    let edges: Vec<Edge> = edges
        .into_iter()
        .filter(|edge| touches(edge, name))
        .collect();
    let is_near =
        |node: &Node| node.name == name || edges.iter().any(|edge| touches(edge, &node.name));
    let nodes = nodes.into_iter().filter(is_near).collect();
    (nodes, edges)
}

/// The edges as positions of nodes. Edges of unknown scans are left out.
fn links<'a>(nodes: &[Node], edges: &'a [Edge]) -> (Vec<Link>, Vec<&'a Edge>) {
    let positions: BTreeMap<&str, usize> = nodes
        .iter()
        .enumerate()
        .map(|(position, node)| (node.name.as_str(), position))
        .collect();
    edges
        .iter()
        .filter_map(|edge| {
            let from = *positions.get(edge.from.as_str())?;
            let to = *positions.get(edge.to.as_str())?;
            Some((Link { from, to }, edge))
        })
        .unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(expr: &str) -> Scan {
        Scan {
            name: "b".to_owned(),
            cron: None,
            timezone: None,
            expr: Some(expr.to_owned()),
            callback: None,
            inputs: None,
            artifacts: Vec::new(),
            reads: Vec::new(),
            steps: 1,
            runs_on: Vec::new(),
            checkout: None,
            callback_server: None,
            retry: None,
        }
    }

    #[test]
    fn an_edge_has_the_function_that_its_expression_calls() {
        let reading = |how| Reading {
            scan: "a".to_owned(),
            how,
        };
        for (expr, expected) in [
            ("scans.a.has_diff('x')", Some("has_diff")),
            (
                "scans.c.has_diff() && scans['a'].is_available()",
                Some("is_available"),
            ),
            ("scans[\"a\"].size() > 2", Some("size")),
            ("scans.a[0].id == ''", None),
            ("scans.aa.has_diff()", None),
        ] {
            let asks = called_function(&scan(expr), &reading(How::Starts));
            assert_eq!(asks.as_deref(), expected, "{expr}");
        }
        assert_eq!(
            called_function(&scan("scans.a.size() > 2"), &reading(How::Reads)),
            None
        );
    }
}
