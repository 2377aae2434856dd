//! What an edge says: the function by which an expression reads a scan.

use wire::{How, Reading, Scan};

use super::layout::{Point, Route, Shape};

/// Longer names are cut.
const MOST_LETTERS: usize = 14;
/// Of the font of code.
const LETTER: i64 = 7;
const BESIDE: i64 = 12;
const HEIGHT: i64 = 18;

/// A label with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) text: String,
    pub(super) middle: Point,
    pub(super) width: i64,
}

impl Label {
    pub(super) const HEIGHT: i64 = HEIGHT;

    /// On the last way between two columns, so that it is near the scan that asks.
    pub(super) fn on(route: &Route, asks: &str) -> Option<Self> {
        let (from, to) = match (route.shape, route.points.as_slice()) {
            (Shape::Loop, _) => return None,
            (Shape::Forward | Shape::Back, [.., from, to]) => (from, to),
            (Shape::Forward | Shape::Back, _) => return None,
        };
        let text: String = asks.chars().take(MOST_LETTERS).collect();
        let letters = i64::try_from(text.chars().count()).unwrap_or(0);
        Some(Self {
            text,
            middle: Point {
                x: i64::midpoint(from.x, to.x),
                y: i64::midpoint(from.y, to.y),
            },
            width: letters * LETTER + BESIDE,
        })
    }

    /// Whether one would hide a part of the other.
    pub(super) fn touches(&self, other: &Self) -> bool {
        let (across, down) = (
            (self.middle.x - other.middle.x).abs(),
            (self.middle.y - other.middle.y).abs(),
        );
        across * 2 < self.width + other.width && down < HEIGHT
    }
}

/// The first function that the expression of a scan calls on another scan.
pub(super) fn asked(scan: &Scan, reading: &Reading) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(expr: &str) -> Scan {
        Scan {
            name: "b".to_owned(),
            cron: None,
            timezone: None,
            expr: Some(expr.to_owned()),
            inputs: None,
            artifacts: Vec::new(),
            reads: Vec::new(),
            steps: 1,
            runs_on: Vec::new(),
            checkout: None,
            retry: None,
        }
    }

    #[test]
    fn an_edge_is_named_by_the_function_that_its_expression_calls() {
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
            let asks = asked(&scan(expr), &reading(How::Starts));
            assert_eq!(asks.as_deref(), expected, "{expr}");
        }
        assert_eq!(
            asked(&scan("scans.a.size() > 2"), &reading(How::Reads)),
            None
        );
    }

    #[test]
    fn labels_that_would_hide_each_other_are_known() {
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
