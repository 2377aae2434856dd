//! Checks one part of the state: a job, a workflow or a folder. The caller uses findings and facts only if nothing
//! changed meanwhile.

use bytes::Bytes;
use store::look::{Entry, Look, Role};
use store::{Details, DiskError, Form, Key, ReadError};

use workflow::hex;

use super::facts::{Facts, Known};
use super::finding::{Code, Finding};
use crate::envelope::{self, EnvelopeError};
use crate::layout::RecordPlace;
use crate::record::Typed;

/// The permission bits of users other than the owner.
const OTHERS: u32 = 0o077;

/// File systems have this folder at their root. It belongs to the administrator.
const LOST_FOUND: &str = "lost+found";

pub(crate) struct Check<'a> {
    pub(crate) look: &'a Look,
    pub(crate) known: &'a Known,
    pub(crate) found: Vec<Finding>,
    pub(crate) facts: Facts,
}

/// A record that could be read and is at its own key.
pub(crate) struct Checked {
    pub(crate) typed: Typed,
    pub(crate) sequence: store::Seq,
}

/// The properties of a large object according to its record.
pub(crate) struct Expected<'a> {
    pub(crate) sha256: &'a str,
    pub(crate) size: Option<u64>,
    pub(crate) missing: Code,
    pub(crate) differs: Code,
}

impl Check<'_> {
    pub(crate) fn find(
        &mut self,
        code: Code,
        path: impl std::fmt::Display,
        what: impl std::fmt::Display,
    ) {
        self.found.push(Finding::new(code, path, what));
    }

    /// The entries of a folder. Unknown entries are reported and left out. Wrong permissions are reported.
    pub(crate) fn entries(&mut self, folder: &str) -> Vec<Entry> {
        let entries = match self.look.entries(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.unreadable(folder, &error);
                return Vec::new();
            }
        };
        let mut taken = Vec::with_capacity(entries.len());
        for entry in entries {
            let path = join(folder, &entry.name);
            if path == LOST_FOUND {
                continue;
            }
            self.check_rights(&path, entry.details.as_ref());
            match entry.role {
                Role::File(_) => {
                    self.facts.counts.files += 1;
                    self.facts.counts.bytes += entry.details.map_or(0, |details| details.bytes);
                    taken.push(entry);
                }
                Role::Folder => taken.push(entry),
                Role::Store => {}
                Role::Leftover => {
                    self.find(Code::Leftover, path, "left over from an interrupted write")
                }
                Role::Foreign => self.find(
                    Code::UnknownFile,
                    path,
                    "no file of a state has such a name",
                ),
            }
        }
        taken
    }

    /// The folders in a folder that contains only folders.
    pub(crate) fn only_folders(&mut self, folder: &str) -> Vec<String> {
        let mut found = Vec::new();
        for entry in self.entries(folder) {
            let path = join(folder, &entry.name);
            match entry.role {
                Role::Folder => found.push(path),
                _ => self.unknown(&path),
            }
        }
        found
    }

    pub(crate) fn unknown(&mut self, path: &str) {
        self.find(Code::UnknownFile, path, "nothing of a state belongs here");
    }

    pub(crate) fn unreadable(&mut self, path: &str, error: &dyn std::error::Error) {
        self.find(Code::Unreadable, path, model::error_chain(error));
    }

    fn check_rights(&mut self, path: &str, details: Option<&Details>) {
        let Some(details) = details else {
            return;
        };
        if details.form == Form::Other {
            // The mode of a link has no meaning.
            return;
        }
        if details.mode & OTHERS != 0 {
            self.find(
                Code::Mode,
                path,
                format!(
                    "others than its owner may use it: its mode is {:04o}",
                    details.mode
                ),
            );
        }
        if self.known.owner.is_some_and(|owner| owner != details.owner) {
            self.find(
                Code::Owner,
                path,
                format!("it belongs to user {}", details.owner),
            );
        }
        // Copies of a blob share one file, which never changes.
        let is_shared = || {
            let key = Key::new(path);
            key.is_ok_and(|key| RecordPlace::parse(&key) == Some(RecordPlace::Blob))
        };
        if details.form == Form::File && details.links > 1 && !is_shared() {
            self.find(Code::Links, path, format!("{} hard links", details.links));
        }
    }

    pub(crate) fn content(&mut self, key: &Key) -> Option<Bytes> {
        match self.look.get(key) {
            Ok(content) => content,
            Err(
                error @ (ReadError::TooLarge { .. }
                | ReadError::Unsettled
                | ReadError::Interrupted
                | ReadError::Fault(_)),
            ) => {
                self.unreadable(key.as_str(), &error);
                None
            }
        }
    }

    /// Reads the record at `key` and reports problems of the record itself.
    pub(crate) fn record(&mut self, key: &Key) -> Option<Checked> {
        let bytes = self.content(key)?;
        self.facts.counts.records += 1;
        let record = match envelope::read(&bytes) {
            Ok(record) => record,
            Err(error) => {
                self.find(code_of(&error), key, &error);
                return None;
            }
        };
        let (id, live, sequence) = (record.id.clone(), record.live, record.stamp.sequence);
        let typed = match record.typed() {
            Ok(typed) => typed,
            Err(error) => {
                self.find(code_of(&error), key, &error);
                return None;
            }
        };
        let place = typed.place();
        if place != *key {
            self.find(Code::RecordMisplaced, key, EnvelopeError::Place(place));
            return None;
        }
        if typed.id() != id {
            let what = format!(
                "its envelope says that it is `{id}`, and its body `{}`",
                typed.id()
            );
            self.find(Code::RecordMisplaced, key, what);
        }
        if typed.is_live() != live {
            let settled = if live { "live" } else { "settled" };
            let what =
                format!("its envelope says that it is {settled}, and its body that it is not");
            self.find(Code::RecordLive, key, what);
        }
        let last = self.look.position().last;
        if sequence > last {
            let what = format!("commit {sequence} wrote it, but the last known commit is {last}");
            self.find(Code::RecordAhead, key, what);
        }
        self.check_index(key, live.then_some(&*bytes));
        Some(Checked { typed, sequence })
    }

    /// The live index must agree with the record.
    fn check_index(&mut self, key: &Key, live: Option<&[u8]>) {
        if self.look.live().is_none() {
            return;
        }
        let what = match (self.look.live_record(key), live) {
            (None, None) => return,
            (Some(indexed), Some(bytes)) if indexed == bytes => return,
            (Some(_), Some(_)) => "the live index has different content for it",
            (None, Some(_)) => "it is live, but missing in the live index",
            (Some(_), None) => "it is settled, but still in the live index",
        };
        self.find(Code::IndexDiffers, key, what);
    }

    /// Compares a large object with its record.
    pub(crate) fn object(&mut self, key: &Key, expected: &Expected<'_>) {
        let object = self.look.object(key);
        let Some(object) = self.readable(key.as_str(), object) else {
            return;
        };
        match object {
            None => self.find(expected.missing, key, "a record names this missing file"),
            Some(found) if expected.size.is_some_and(|size| size != found.size) => {
                let size = expected.size.unwrap_or_default();
                let what = format!("it has {} bytes, but its record says {size}", found.size);
                self.find(expected.differs, key, what);
            }
            Some(found) if hex(&found.sha256) != expected.sha256 => {
                let what = format!("its SHA-256 is {}", hex(&found.sha256));
                self.find(expected.differs, key, what);
            }
            Some(_) => {}
        }
    }

    /// Reports a disk error as a finding.
    pub(crate) fn readable<T>(&mut self, path: &str, result: Result<T, DiskError>) -> Option<T> {
        result.map_err(|error| self.unreadable(path, &error)).ok()
    }
}

/// The path of an entry of a folder. For the root, `folder` is empty.
pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

const fn code_of(error: &EnvelopeError) -> Code {
    match error {
        EnvelopeError::Malformed(_) => Code::RecordMalformed,
        EnvelopeError::Newer(_) => Code::RecordNewer,
        EnvelopeError::Checksum => Code::RecordChecksum,
        EnvelopeError::Kind { .. } | EnvelopeError::Place(_) => Code::RecordMisplaced,
    }
}
