//! YAML as a tree in which every node has its place. It does not depend on workflows. Depth, aliases and size are limited while
//! the tree is built. Duplicate keys are reported here, because the tree cannot represent them.

mod build;
mod place;
mod scalar;
mod syntax;

use std::rc::Rc;

pub(crate) use build::build;
pub(crate) use place::Places;
pub(crate) use scalar::{Meaning, Scalar, Style};

use crate::limits::SHOWN_CHARS;
use crate::position::Span;

/// A value in the file.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) content: Content,
    weight: Weight,
    /// Whether a part of it was reported and left out, such as the second value of a repeated key.
    is_partial: bool,
}

/// What a value is.
#[derive(Debug)]
pub(crate) enum Content {
    Scalar(Scalar),
    List(Vec<Rc<Node>>),
    Map(Vec<Entry>),
    /// A value that was already reported.
    Invalid,
}

/// One key of an object with its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Rc<str>,
    pub(crate) key_span: Span,
    pub(crate) value: Rc<Node>,
}

impl Entry {
    /// The key for a message, shortened if it is very long.
    pub(crate) fn shown_key(&self) -> &str {
        let end = self.key.char_indices().nth(SHOWN_CHARS);
        self.key
            .get(..end.map_or(self.key.len(), |(at, _)| at))
            .unwrap_or("")
    }
}

/// The nodes and bytes that each alias of this node adds to the tree.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    nodes: usize,
    bytes: usize,
}

impl Weight {
    fn add(&mut self, other: Self) {
        self.nodes = self.nodes.saturating_add(other.nodes);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl Node {
    /// The kind of value, for messages.
    pub(crate) fn label(&self) -> &'static str {
        match &self.content {
            Content::Scalar(scalar) => scalar.meaning().label(),
            Content::List(_) => "a list",
            Content::Map(_) => "an object",
            Content::Invalid => "something invalid",
        }
    }

    /// True if no part of this value was left out, at any depth.
    pub(crate) fn is_whole(&self) -> bool {
        !self.is_partial
            && match &self.content {
                Content::Scalar(_) => true,
                Content::List(items) => items.iter().all(|item| item.is_whole()),
                Content::Map(entries) => entries.iter().all(|entry| entry.value.is_whole()),
                Content::Invalid => false,
            }
    }

    /// True if a direct part of this list or object was left out. Nested values are not considered.
    pub(crate) const fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// True if the value is null or missing.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(scalar) if scalar.meaning() == Meaning::Null)
    }
}
