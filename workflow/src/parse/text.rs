//! Reads single values: texts, booleans, choices, durations, lists. If a value is invalid, the function reports it and returns
//! `None`.

use chrono::TimeDelta;

use super::Reader;
use super::object::listed;
use crate::diagnostic::Code;
use crate::duration::parse_duration;
use crate::limits::LABEL_CHARS;
use crate::names::NameError;
use crate::size::parse_size;
use crate::suggestion::did_you_mean;
use crate::yaml::{Content, Entry, Meaning, Node};

impl Reader<'_> {
    /// Reports a value of the wrong type, with the best hint.
    pub(super) fn wrong_type(&mut self, entry: &Entry, what: &str, wanted: &str) {
        let node = &entry.value;
        match &node.content {
            Content::Invalid => {}
            _ if node.is_null() => {
                self.report
                    .error(
                        entry.key_span,
                        Code::NullValue,
                        format!("{what} has no value"),
                    )
                    .hint(format!("give it {wanted}, or remove the key"));
            }
            Content::Scalar(_) | Content::List(_) | Content::Map(_) => {
                let message = format!("{what} must be {wanted}, found {}", node.label());
                self.report.error(node.span, Code::WrongType, message);
            }
        }
    }

    /// A text. Other scalars are refused with the hint to quote them.
    pub(super) fn text<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        match &node.content {
            Content::Scalar(scalar) => match scalar.meaning() {
                Meaning::Text => return Some(&scalar.text),
                Meaning::Null => {
                    let message = format!("{what} has no value");
                    self.report
                        .error(node.span, Code::NullValue, message)
                        .hint("give it a string; an empty one is `\"\"`");
                }
                Meaning::Bool(_) | Meaning::Number => {
                    let message = format!("{what} must be a string, found {}", node.label());
                    self.report
                        .error(node.span, Code::WrongType, message)
                        .hint(format!("quote it: `\"{}\"`", scalar.text));
                }
            },
            Content::List(_) | Content::Map(_) => {
                let message = format!("{what} must be a string, found {}", node.label());
                self.report.error(node.span, Code::WrongType, message);
            }
            Content::Invalid => {}
        }
        None
    }

    pub(super) fn boolean(&mut self, entry: &Entry, what: &str) -> Option<bool> {
        if let Content::Scalar(scalar) = &entry.value.content
            && let Meaning::Bool(value) = scalar.meaning()
        {
            return Some(value);
        }
        let meant = match &entry.value.content {
            Content::Scalar(scalar) => intended_boolean(&scalar.text),
            Content::List(_) | Content::Map(_) | Content::Invalid => None,
        };
        match meant {
            None => self.wrong_type(entry, what, "`true` or `false`"),
            Some(meant) => {
                let node = &entry.value;
                let message = format!("{what} must be `true` or `false`, found {}", node.label());
                self.report
                    .error(node.span, Code::WrongType, message)
                    .hint(format!(
                        "write `{meant}` without quotes; YAML 1.2 accepts only that"
                    ));
            }
        }
        None
    }

    /// A whole number within bounds.
    pub(super) fn number(&mut self, entry: &Entry, what: &str, min: u8, max: u8) -> Option<u8> {
        let Content::Scalar(scalar) = &entry.value.content else {
            self.wrong_type(entry, what, "a number");
            return None;
        };
        if scalar.meaning() != Meaning::Number {
            self.wrong_type(entry, what, "a number");
            return None;
        }
        let number = scalar
            .text
            .parse()
            .ok()
            .filter(|number| (min..=max).contains(number));
        if number.is_none() {
            let message = format!("{what} must be a whole number from {min} to {max}");
            self.report
                .error(entry.value.span, Code::InvalidValue, message);
        }
        number
    }

    /// One of several words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        entry: &Entry,
        what: &str,
        choices: &[T],
        name: fn(T) -> &'static str,
    ) -> Option<T> {
        let text = self.text(&entry.value, what)?;
        let found = choices.iter().copied().find(|choice| name(*choice) == text);
        if found.is_none() {
            let names: Vec<&str> = choices.iter().copied().map(name).collect();
            let message = format!("{what} must be one of {}", listed(&names));
            self.report
                .error(entry.value.span, Code::InvalidValue, message)
                .suggest(|| did_you_mean(text, names));
        }
        found
    }

    /// A size in bytes, more than zero.
    pub(super) fn size(&mut self, entry: &Entry, what: &str) -> Option<u64> {
        let node = &entry.value;
        let text = match &node.content {
            Content::Scalar(scalar) if scalar.meaning() == Meaning::Number => &scalar.text,
            _ => self.text(node, what)?,
        };
        let message = match parse_size(text.trim_end()) {
            Ok(0) => format!("{what} must be more than 0"),
            Ok(bytes) => return Some(bytes),
            Err(error) => format!("{what}: {error}"),
        };
        self.report.error(node.span, Code::InvalidValue, message);
        None
    }

    /// A duration up to `max`.
    pub(super) fn duration(
        &mut self,
        entry: &Entry,
        what: &str,
        max: Option<TimeDelta>,
    ) -> Option<TimeDelta> {
        let node = &entry.value;
        if let Content::Scalar(scalar) = &node.content
            && scalar.meaning() == Meaning::Number
        {
            let message = format!("{what} is a number without a unit");
            self.report
                .error(node.span, Code::InvalidDuration, message)
                .hint(format!("add the unit, such as `{}s`", scalar.text));
            return None;
        }
        let text = self.text(node, what)?;
        match parse_duration(text.trim_end()) {
            Ok(duration) => {
                if let Some(max) = max.filter(|max| duration > *max) {
                    let message = format!(
                        "{what} is longer than {}",
                        crate::duration::format_duration(max)
                    );
                    self.report.error(node.span, Code::InvalidValue, message);
                    return None;
                }
                Some(duration)
            }
            Err(error) => {
                self.report
                    .error(node.span, Code::InvalidDuration, format!("{what}: {error}"))
                    .hint(error.hint());
                None
            }
        }
    }

    /// The items of a list with at most `max` items. `form` is an example for messages.
    pub(super) fn items<'n>(
        &mut self,
        entry: &'n Entry,
        what: &str,
        form: &str,
        max: usize,
    ) -> &'n [std::rc::Rc<Node>] {
        let Content::List(items) = &entry.value.content else {
            let found = &entry.value;
            match &found.content {
                Content::Scalar(_) | Content::Map(_) if !found.is_null() => {
                    let message = format!("{what} must be a list, found {}", found.label());
                    self.report
                        .error(found.span, Code::WrongType, message)
                        .hint(format!("write it like `{form}`"));
                }
                _ => self.wrong_type(entry, what, "a list"),
            }
            return &[];
        };
        if items.len() > max {
            let message = format!(
                "{what} has {} entries; at most {max} are allowed",
                items.len()
            );
            self.report.error(entry.key_span, Code::TooMany, message);
            return &[];
        }
        items
    }

    /// A list of short texts without control characters. `rule` must accept each text.
    pub(super) fn words(
        &mut self,
        entry: &Entry,
        what: &str,
        max: usize,
        rule: impl Fn(&str) -> Result<(), NameError>,
    ) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        for item in self.items(entry, what, "[one, two]", max) {
            let Some(text) = self.text(item, &format!("an entry of {what}")) else {
                continue;
            };
            if text.trim() != text
                || text.is_empty()
                || text.chars().count() > LABEL_CHARS
                || text.contains(char::is_control)
            {
                let message =
                    format!("an entry of {what} is a word of 1 to {LABEL_CHARS} characters");
                self.report.error(item.span, Code::InvalidValue, message);
            } else if words.iter().any(|known| known == text) {
                self.report.error(
                    item.span,
                    Code::DuplicateName,
                    format!("{what} names `{text}` twice"),
                );
            } else if let Err(error) = rule(text) {
                self.report
                    .error(item.span, Code::InvalidName, error.to_string());
            } else {
                words.push(text.to_owned());
            }
        }
        words
    }
}

/// The boolean that was meant by a quoted boolean or a word of older YAML versions.
fn intended_boolean(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "true" | "yes" | "y" | "on" => Some(true),
        "false" | "no" | "n" | "off" => Some(false),
        _ => None,
    }
}
