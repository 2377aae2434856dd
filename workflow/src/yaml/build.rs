//! Builds the tree from the parser's events, with an explicit stack.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError};

use super::{Content, Entry, Node, Scalar, Style, Weight, syntax};
use crate::diagnostic::Code;
use crate::limits::{ALIAS_BYTES, ALIAS_NODES, YAML_DEPTH, YAML_NODES};
use crate::position::Span;
use crate::report::Report;

/// Builds the tree of the file's only document. Problems go to `report`. `None` if there is no tree.
pub(crate) fn build(text: &str, report: &mut Report<'_>) -> Option<Rc<Node>> {
    let mut options = Options::default();
    options.emit_comments = false;
    options.emit_unresolved_aliases = true;
    options.flow_nesting_limit = YAML_DEPTH;
    options.block_nesting_limit = YAML_DEPTH;
    let mut builder = Builder {
        report,
        stack: Vec::new(),
        anchors: HashMap::new(),
        aliased: Weight::default(),
        nodes: 0,
        documents: 0,
        root: None,
    };
    for event in Parser::new_from_str_with_options(text, options) {
        let taken = match event {
            Ok((event, span)) => builder.take(event, span_of(&span)),
            Err(error) => Err(builder.syntax_error(text, &error)),
        };
        if matches!(taken, Err(Stop)) {
            return None;
        }
    }
    builder.root
}

/// The rest of the file cannot be understood.
struct Stop;

struct Builder<'r, 't> {
    report: &'r mut Report<'t>,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Rc<Node>>,
    aliased: Weight,
    nodes: usize,
    documents: usize,
    root: Option<Rc<Node>>,
}

/// An object or list that is not complete yet.
struct Frame {
    start: usize,
    anchor: usize,
    open: Open,
    /// Whether a part of it was reported and left out.
    is_partial: bool,
}

enum Open {
    List(Vec<Rc<Node>>),
    Map {
        entries: Vec<Entry>,
        key: Option<(Option<Rc<str>>, Span)>,
        merged: Vec<Rc<Node>>,
    },
}

impl Builder<'_, '_> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Stop> {
        match event {
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            Event::Comment(..) | Event::Anchor(..) => {}
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.report
                        .error(span, Code::UnsupportedYaml, "a file holds one document")
                        .hint("put the second workflow into its own file");
                    return Err(Stop);
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.count(span)?;
                self.refuse_tag(tag.is_some(), span);
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted => Style::SingleQuoted,
                    ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
                    ScalarStyle::Literal => Style::Literal,
                    ScalarStyle::Folded => Style::Folded,
                };
                let weight = Weight {
                    nodes: 1,
                    bytes: text.len(),
                };
                let content = Content::Scalar(Scalar {
                    text: text.into_owned(),
                    style,
                });
                self.complete(
                    Rc::new(Node {
                        span,
                        content,
                        weight,
                        is_partial: false,
                    }),
                    anchor,
                );
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(node) => {
                    self.aliased.add(node.weight);
                    if self.aliased.nodes > ALIAS_NODES || self.aliased.bytes > ALIAS_BYTES {
                        let message = "the aliases of this file expand to too much".to_owned();
                        self.report.error(span, Code::AliasBudget, message);
                        return Err(Stop);
                    }
                    self.complete(node, 0);
                }
                None => {
                    self.report.error(
                        span,
                        Code::Syntax,
                        "an alias cannot be inside the value that it repeats",
                    );
                    self.complete(invalid(span), 0);
                }
            },
            Event::UnresolvedAlias(name) => {
                self.report
                    .error(
                        span,
                        Code::Syntax,
                        format!("there is no anchor `&{name}` before this alias"),
                    )
                    .hint("a text that starts with `*` must be quoted");
                self.complete(invalid(span), 0);
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_tag(tag.is_some(), span);
                self.open(span, anchor, Open::List(Vec::new()))?;
            }
            Event::MappingStart(_, anchor, tag) => {
                self.refuse_tag(tag.is_some(), span);
                self.open(
                    span,
                    anchor,
                    Open::Map {
                        entries: Vec::new(),
                        key: None,
                        merged: Vec::new(),
                    },
                )?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            // Other events do not occur with these options. A new version of the parser may have further events.
            _ => {
                self.report
                    .error(span, Code::UnsupportedYaml, "this has no meaning here");
                return Err(Stop);
            }
        }
        Ok(())
    }

    /// Counts one more value, list or object of the file.
    fn count(&mut self, span: Span) -> Result<(), Stop> {
        self.nodes += 1;
        if self.nodes > YAML_NODES {
            let message = format!("the file has more than {YAML_NODES} keys and values");
            self.report
                .error(span, Code::FileTooComplex, message)
                .hint("split the workflow");
            return Err(Stop);
        }
        Ok(())
    }

    fn open(&mut self, span: Span, anchor: usize, open: Open) -> Result<(), Stop> {
        self.count(span)?;
        if self.stack.len() >= YAML_DEPTH {
            self.report.error(
                span,
                Code::TooDeep,
                format!("nested more than {YAML_DEPTH} deep"),
            );
            return Err(Stop);
        }
        self.stack.push(Frame {
            start: span.start,
            anchor,
            open,
            is_partial: false,
        });
        Ok(())
    }

    fn close(&mut self, end: Span) {
        let Some(frame) = self.stack.pop() else {
            return;
        };
        let mut weight = Weight { nodes: 1, bytes: 0 };
        let mut is_partial = frame.is_partial;
        let content = match frame.open {
            Open::List(items) => {
                items.iter().for_each(|item| weight.add(item.weight));
                Content::List(items)
            }
            Open::Map {
                mut entries,
                key: _,
                merged,
            } => {
                is_partial |= !self.merge(&mut entries, &merged);
                for entry in &entries {
                    weight.add(Weight {
                        nodes: 1,
                        bytes: entry.key.len(),
                    });
                    weight.add(entry.value.weight);
                }
                let written = entries.len();
                let entries = self.without_duplicates(entries);
                is_partial |= entries.len() < written;
                Content::Map(entries)
            }
        };
        let span = Span::new(frame.start, end_of(&content, frame.start, end));
        self.complete(
            Rc::new(Node {
                span,
                content,
                weight,
                is_partial,
            }),
            frame.anchor,
        );
    }

    /// Adds a complete node: a key, a value, an item or the document.
    fn complete(&mut self, node: Rc<Node>, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node);
            return;
        };
        match &mut frame.open {
            Open::List(items) => items.push(node),
            Open::Map {
                entries,
                key,
                merged,
            } => match key.take() {
                None => {
                    let name = match &node.content {
                        Content::Scalar(scalar) => Some(Rc::from(scalar.text.as_str())),
                        Content::List(_) | Content::Map(_) => {
                            self.report.error(
                                node.span,
                                Code::UnsupportedYaml,
                                "a key must be a text",
                            );
                            None
                        }
                        Content::Invalid => None,
                    };
                    *key = Some((name, node.span));
                }
                Some((Some(name), _)) if &*name == "<<" => merged.push(node),
                Some((Some(name), key_span)) => entries.push(Entry {
                    key: name,
                    key_span,
                    value: node,
                }),
                Some((None, _)) => frame.is_partial = true,
            },
        }
    }

    /// Handles `<<`: adds keys of other objects, unless the object already has them. Earlier keys win. Returns false if a part
    /// was lost.
    fn merge(&mut self, entries: &mut Vec<Entry>, merged: &[Rc<Node>]) -> bool {
        let mut sources: Vec<&Rc<Node>> = Vec::new();
        for node in merged {
            match &node.content {
                Content::List(items) => sources.extend(items),
                Content::Scalar(_) | Content::Map(_) | Content::Invalid => sources.push(node),
            }
        }
        let mut present: HashSet<Rc<str>> =
            entries.iter().map(|entry| Rc::clone(&entry.key)).collect();
        let mut is_whole = true;
        for source in sources {
            match &source.content {
                Content::Map(others) => {
                    is_whole &= !source.is_partial;
                    entries.extend(
                        others
                            .iter()
                            .filter(|other| present.insert(Rc::clone(&other.key)))
                            .cloned(),
                    );
                }
                Content::Scalar(_) | Content::List(_) => {
                    is_whole = false;
                    self.report.error(
                        source.span,
                        Code::WrongType,
                        "`<<` takes an object or a list of objects",
                    );
                }
                Content::Invalid => is_whole = false,
            }
        }
        is_whole
    }

    fn without_duplicates(&mut self, entries: Vec<Entry>) -> Vec<Entry> {
        let mut first: HashMap<Rc<str>, Span> = HashMap::with_capacity(entries.len());
        let mut unique = Vec::with_capacity(entries.len());
        for entry in entries {
            match first.get(&entry.key) {
                Some(before) => {
                    let line = self.report.line(*before);
                    self.report
                        .error(
                            entry.key_span,
                            Code::DuplicateKey,
                            format!("the key `{}` is here twice", entry.shown_key()),
                        )
                        .hint(format!("it is already in line {line}"));
                }
                None => {
                    first.insert(Rc::clone(&entry.key), entry.key_span);
                    unique.push(entry);
                }
            }
        }
        unique
    }

    fn refuse_tag(&mut self, has_tag: bool, span: Span) {
        if has_tag {
            self.report
                .error(span, Code::UnsupportedYaml, "tags have no meaning here")
                .hint("quote a value that is to be a string");
        }
    }

    fn syntax_error(&mut self, text: &str, error: &ScanError) -> Stop {
        let at = error
            .marker()
            .byte_offset()
            .unwrap_or(text.len())
            .min(text.len());
        let ahead = syntax::forbidden(error).and_then(|character| text.get(at..)?.find(character));
        let at = at + ahead.unwrap_or(0);
        let behind = text.get(at..).and_then(|rest| rest.chars().next());
        let length = behind.filter(|c| !c.is_control()).map_or(0, char::len_utf8);
        let start = (text.get(..at)).and_then(|before| Some(before.rfind('\n')? + 1));
        let line = text
            .get(start.unwrap_or(0)..)
            .and_then(|rest| rest.lines().next())
            .unwrap_or_default();
        let explained = syntax::explain(error, line);
        let reported = self.report.error(
            Span::new(at, at + length),
            explained.code,
            explained.message,
        );
        if let Some(hint) = explained.hint {
            reported.hint(hint);
        }
        Stop
    }
}

/// The end of an object or list: its closing bracket, or without brackets the end of its last part. (For the parser, it ends at
/// the next token.)
fn end_of(content: &Content, start: usize, end: Span) -> usize {
    if end.end > end.start {
        return end.end;
    }
    let last = match content {
        Content::List(items) => items.last().map(|item| item.span.end),
        Content::Map(entries) => entries
            .last()
            .map(|entry| entry.value.span.end.max(entry.key_span.end)),
        Content::Scalar(_) | Content::Invalid => None,
    };
    // The value of an alias is at another place.
    last.filter(|last| (start..=end.start).contains(last))
        .unwrap_or(end.start.max(start))
}

fn invalid(span: Span) -> Rc<Node> {
    Rc::new(Node {
        span,
        content: Content::Invalid,
        weight: Weight { nodes: 1, bytes: 0 },
        is_partial: false,
    })
}

fn span_of(span: &granit_parser::Span) -> Span {
    span.byte_range()
        .map_or_else(Span::default, |range| Span::new(range.start, range.end))
}
