//! The parts of a layout: nodes, edges, their places and their columns.

/// Around the drawing, for the outline of a focused node.
pub(super) const MARGIN: i64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub width: i64,
    pub height: i64,
}

/// An edge, as positions in the list of nodes.
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

/// The place of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Area {
    pub x: i64,
    pub y: i64,
    pub width: i64,
    pub height: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// From left to right. Its points are in pairs: a curve between pairs, a straight line within a pair.
    Forward,
    /// From right to left, closing a cycle. Its points are like those of a forward edge.
    Back,
    /// From a node to itself. Its four points are one cubic curve.
    Loop,
}

/// The line of an edge between the borders of its nodes.
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
    /// In the order of the given edges, without edges of unknown nodes.
    pub routes: Vec<Route>,
    pub width: i64,
    pub height: i64,
}

/// Nodes and bends in columns. Numbers below `nodes` are nodes, all others are bends of long edges.
pub(super) struct Layers {
    pub(super) columns: Vec<Vec<usize>>,
    /// The neighbours of each item in the columns to its left and right.
    pub(super) before: Vec<Vec<usize>>,
    pub(super) after: Vec<Vec<usize>>,
    pub(super) heights: Vec<i64>,
    pub(super) nodes: usize,
}
