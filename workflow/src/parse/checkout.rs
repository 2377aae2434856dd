//! `checkout`.

use super::Reader;
use crate::checkout::{Checkout, source_path};
use crate::diagnostic::Code;
use crate::limits::CHECKOUT_PATHS;
use crate::yaml::{Content, Entry, Meaning};

impl Reader<'_> {
    /// The files that a job gets. None for `false`.
    pub(super) fn checkout(&mut self, entry: &Entry) -> Option<Checkout> {
        match &entry.value.content {
            Content::List(items) if items.is_empty() => {
                self.report
                    .error(entry.value.span, Code::Empty, "`checkout` is empty")
                    .hint("name a path, or write `true` for the whole repository");
                None
            }
            Content::List(_) => Some(Checkout::Paths(self.source_paths(entry))),
            Content::Scalar(scalar) if scalar.meaning() == Meaning::Text => {
                let meant = scalar.text.to_lowercase();
                if ["true", "false", "yes", "no", "on", "off"].contains(&&*meant) {
                    self.boolean(entry, "`checkout`");
                } else {
                    let message = format!(
                        "`checkout` must be `true`, `false` or a list of paths, found {}",
                        entry.value.label()
                    );
                    self.report
                        .error(entry.value.span, Code::WrongType, message)
                        .hint(format!("write it like `[{}]`", scalar.text));
                }
                None
            }
            Content::Scalar(scalar) => match scalar.meaning() {
                Meaning::Bool(wanted) => wanted.then_some(Checkout::All),
                Meaning::Null | Meaning::Number | Meaning::Text => {
                    self.wrong_type(entry, "`checkout`", "`true`, `false` or a list of paths");
                    None
                }
            },
            Content::Map(_) | Content::Invalid => {
                self.wrong_type(entry, "`checkout`", "`true`, `false` or a list of paths");
                None
            }
        }
    }

    fn source_paths(&mut self, entry: &Entry) -> Vec<String> {
        let mut paths: Vec<String> = Vec::new();
        for item in self.items(entry, "`checkout`", "[scripts]", CHECKOUT_PATHS) {
            let Some(text) = self.text(item, "an entry of `checkout`") else {
                continue;
            };
            match source_path(text) {
                Ok(path) if paths.iter().any(|known| known == path) => {
                    let message = format!("`checkout` names `{path}` twice");
                    self.report.error(item.span, Code::DuplicateName, message);
                }
                Ok(path) => paths.push(path.to_owned()),
                Err((message, hint)) => {
                    self.report
                        .error(item.span, Code::InvalidPath, message)
                        .hint(hint);
                }
            }
        }
        paths
    }
}
