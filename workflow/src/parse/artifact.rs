//! Reads `artifacts`.

use std::collections::BTreeSet;

use super::Reader;
use super::object::{Object, keys};
use crate::definition::{Artifact, NotifyOn, Step, UploadOn};
use crate::diagnostic::Code;
use crate::expression::{Names, Site};
use crate::limits::{ARTIFACTS, PATH_PATTERN_BYTES};
use crate::names::check_artifact_name;
use crate::path_pattern::PathPattern;
use crate::yaml::{Content, Entry, Node};

impl Reader<'_> {
    /// The artifacts of a scan. `steps` make them. `None` if a step could not be read.
    pub(super) fn artifacts(
        &mut self,
        entry: &Entry,
        steps: Option<&[Step]>,
        names: &Names,
    ) -> Vec<Artifact> {
        let mut used = BTreeSet::new();
        let items = self.items(
            entry,
            "`artifacts`",
            "[ { name: out, paths: [out] } ]",
            ARTIFACTS,
        );
        let mut artifacts = Vec::with_capacity(items.len());
        for item in items {
            let before = self.report.unread();
            let artifact = self.artifact(item, &mut used, names);
            if let (Some(artifact), Some(steps)) = (&artifact, steps)
                && self.report.unread() == before
            {
                self.artifact_condition(item, artifact, steps);
            }
            artifacts.extend(artifact);
        }
        artifacts
    }

    fn artifact(
        &mut self,
        node: &Node,
        used: &mut BTreeSet<String>,
        names: &Names,
    ) -> Option<Artifact> {
        let object = Object::of(
            node,
            "an artifact",
            "{ name: report, paths: [report.txt] }",
            &mut self.report,
        )?;
        object.check_keys(&keys::ARTIFACT, &mut self.report);
        let name = match object.get("name") {
            Some(entry) => self.artifact_name(entry, used),
            None => {
                self.report
                    .error(object.head(), Code::MissingKey, "an artifact needs `name`");
                None
            }
        };
        let paths = match object.get("paths") {
            Some(entry) => self.paths(entry),
            None => {
                self.report
                    .error(object.head(), Code::MissingKey, "an artifact needs `paths`")
                    .hint("list files and folders, relative to the job's folder");
                Vec::new()
            }
        };
        let condition = object
            .get("if")
            .and_then(|entry| self.expression(entry, "`if`", Site::Artifact, names));
        let expires_in = object
            .get("expires_in")
            .and_then(|entry| self.duration(entry, "`expires_in`", None));
        let upload_on = object
            .get("upload_on")
            .and_then(|entry| self.choice(entry, "`upload_on`", UploadOn::ALL, UploadOn::name))
            .unwrap_or_default();
        let strict = object
            .get("strict")
            .and_then(|entry| self.boolean(entry, "`strict`"))
            .unwrap_or_default();
        let notify_on = object
            .get("notify_on")
            .and_then(|entry| self.choice(entry, "`notify_on`", NotifyOn::ALL, NotifyOn::name))
            .unwrap_or_default();
        Some(Artifact {
            name: name?,
            paths,
            condition,
            expires_in,
            upload_on,
            strict,
            notify_on,
        })
    }

    fn artifact_name(&mut self, entry: &Entry, used: &mut BTreeSet<String>) -> Option<String> {
        let text = self.text(&entry.value, "`name`")?;
        if let Err(error) = check_artifact_name(text) {
            self.report
                .error(entry.value.span, Code::InvalidName, error.to_string());
            return None;
        }
        if !used.insert(text.to_owned()) {
            let message = format!("the scan has two artifacts named `{text}`");
            self.report
                .error(entry.value.span, Code::DuplicateName, message)
                .hint("an artifact can have several `paths`");
            return None;
        }
        Some(text.to_owned())
    }

    fn paths(&mut self, entry: &Entry) -> Vec<String> {
        if let Content::List(items) = &entry.value.content
            && items.is_empty()
        {
            self.report
                .error(entry.value.span, Code::Empty, "`paths` is empty");
        }
        let mut paths = Vec::new();
        for item in self.items(entry, "`paths`", "[out, report.txt]", usize::MAX) {
            let Some(text) = self.text(item, "an entry of `paths`") else {
                continue;
            };
            match check_path(text) {
                Ok(()) => {
                    self.literal_path(item, text);
                    paths.push(text.to_owned());
                }
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

/// Checks a path or pattern. The error is a message with a hint.
fn check_path(text: &str) -> Result<(), (String, String)> {
    let problem = |message: &str, hint: &str| Err((message.to_owned(), hint.to_owned()));
    let pattern = PathPattern::of(text);
    let path = text.strip_prefix(PathPattern::MARK).unwrap_or(text);
    if path.is_empty() || path.contains(char::is_control) {
        return problem(
            "a path is one line and not empty",
            "name a file or folder of the job",
        );
    }
    if path.starts_with(['/', '~']) {
        return problem(
            "a path is relative to the job's folder",
            "write the file into the job's folder first",
        );
    }
    if path.split('/').any(|part| part == "..") {
        return problem(
            "a path cannot leave the job's folder",
            "write the file into the job's folder first",
        );
    }
    match pattern {
        None if path.contains(['*', '?']) => Err((
            "a plain path has no `*` and no `?`".to_owned(),
            format!(
                "name the folder, or write the pattern as `{}{path}`",
                PathPattern::MARK
            ),
        )),
        Some(_) if path.len() > PATH_PATTERN_BYTES => Err((
            format!("a pattern has at most {PATH_PATTERN_BYTES} bytes"),
            "write several shorter ones".to_owned(),
        )),
        Some(Err(problem)) => Err((
            format!("the pattern cannot be read: {problem}"),
            "write `\\` before a character that is meant literally".to_owned(),
        )),
        None | Some(Ok(_)) => Ok(()),
    }
}
