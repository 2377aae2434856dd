//! YAML as a tree whose every node knows where it stands. It knows nothing of workflows. Depth, aliases and size are
//! bounded while the tree is built; duplicate keys are found here, because a tree cannot hold them.

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
    /// A part of it, such as a key's second value, has been reported and left out.
    is_partial: bool,
}

/// What a value is.
#[derive(Debug)]
pub(crate) enum Content {
    Scalar(Scalar),
    List(Vec<Rc<Node>>),
    Map(Vec<Entry>),
    /// Something that has been reported already.
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
    /// The key for a message. One as long as the file may be would make a message of that length each time.
    pub(crate) fn shown_key(&self) -> &str {
        let end = self.key.char_indices().nth(SHOWN_CHARS);
        self.key
            .get(..end.map_or(self.key.len(), |(at, _)| at))
            .unwrap_or("")
    }
}

/// What a node and all below it would cost if an alias repeated it.
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
    /// How messages call what is here.
    pub(crate) fn label(&self) -> &'static str {
        match &self.content {
            Content::Scalar(scalar) => scalar.meaning().label(),
            Content::List(_) => "a list",
            Content::Map(_) => "an object",
            Content::Invalid => "something invalid",
        }
    }

    /// Whether all that the file says here is in the tree, at any depth.
    pub(crate) fn is_whole(&self) -> bool {
        !self.is_partial
            && match &self.content {
                Content::Scalar(_) => true,
                Content::List(items) => items.iter().all(|item| item.is_whole()),
                Content::Map(entries) => entries.iter().all(|entry| entry.value.is_whole()),
                Content::Invalid => false,
            }
    }

    /// Whether something of the object or list itself was left out; its parts may be damaged on their own.
    pub(crate) const fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Whether it is there without a value.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(scalar) if scalar.meaning() == Meaning::Null)
    }
}
