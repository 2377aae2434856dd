//! What a layout is made of: nodes and edges, their places, and the columns they stand in.

/// Room around the drawing, for the outline of a focused node.
pub(super) const MARGIN: i64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub width: i64,
    pub height: i64,
}

/// An edge between two nodes, by their positions in the list of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub from: usize,
    pub to: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub x: i64,
    pub y: i64,
}

/// Where a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Area {
    pub x: i64,
    pub y: i64,
    pub width: i64,
    pub height: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// With the flow. Its points are in pairs: a curve between two pairs, a straight line within the bends.
    Forward,
    /// Against the flow: it closes a cycle. Its points are as those of a forward edge.
    Back,
    /// From a node to itself. Its four points are those of one cubic curve.
    Loop,
}

/// The way of an edge, from the border of its first node to the border of its last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The position of the edge in the list of edges.
    pub link: usize,
    pub shape: Shape,
    pub points: Vec<Point>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    /// In the order of the given nodes.
    pub nodes: Vec<Area>,
    /// In the order of the given edges, without those that name a node that does not exist.
    pub routes: Vec<Route>,
    pub width: i64,
    pub height: i64,
}

/// Nodes and bends in columns. Numbers below `nodes` are nodes, the others are bends of long edges.
pub(super) struct Layers {
    pub(super) columns: Vec<Vec<usize>>,
    /// The neighbours of each item in the column to its left, and to its right.
    pub(super) before: Vec<Vec<usize>>,
    pub(super) after: Vec<Vec<usize>>,
    pub(super) heights: Vec<i64>,
    pub(super) nodes: usize,
}
