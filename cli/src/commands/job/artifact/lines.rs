//! The lines of text that are in one artifact but not in an older artifact, for `diff --lines` and `news`. Each file is compared
//! with the older file of the same name; the order and number of equal lines make no difference. Memory holds digests of lines,
//! never whole files. Lines are printed only after all of them are known, so a failure prints no line.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, Write};

use client::Client;
use sha2::{Digest, Sha256};
use uuid::Uuid;
use zip::ZipArchive;
use zip::result::ZipError;

use super::unpack::most_bytes;
use crate::error::Error;
use crate::limits;
use crate::receiving::receive;
use crate::session::Session;
use crate::table::bytes;
use crate::terminal::Terminal;

/// Bytes at the start of a file that distinguish text from other content, as in Git.
const HEAD: u64 = 8_000;

pub(super) struct Fetched {
    name: String,
    archive: ZipArchive<File>,
    files: BTreeMap<String, usize>,
    /// How many bytes the files may have, and how many of them are still unread.
    limit: u64,
    left: u64,
}

pub(super) async fn fetch(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
    artifact: &str,
) -> Result<Fetched, Error> {
    let (file, size) = fetch_file(session, client, job, artifact).await?;
    Fetched::of(artifact, file, size)
}

/// Fetches an artifact into a file without a name.
pub(crate) async fn fetch_file(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
    artifact: &str,
) -> Result<(File, u64), Error> {
    let failed = |source| Error::Write {
        path: std::env::temp_dir(),
        source,
    };
    let mut transfer = client.download_artifact(job, artifact).await?;
    let mut file = tempfile::tempfile().map_err(failed)?;
    let write = |_: &mut Terminal, piece: &[u8]| file.write_all(piece).map_err(failed);
    let size = receive(session, &mut transfer, artifact, write).await?;
    Ok((file, size))
}

/// Prints the lines of `newer` that are missing in `older`, or all lines without an older artifact. Returns their number. With
/// `only`, all other files are ignored. Files without text are named and skipped.
pub(super) fn print_new(
    terminal: &mut Terminal,
    mut newer: Fetched,
    mut older: Option<Fetched>,
    only: Option<&str>,
) -> Result<u64, Error> {
    let names: Vec<String> = match only {
        None => newer.files.keys().cloned().collect(),
        Some(name) => {
            let known = |fetched: &Fetched| fetched.files.contains_key(name);
            if !known(&newer) && !older.as_ref().is_some_and(known) {
                return Err(Error::Missing {
                    what: format!("{} has no file {name:?}", newer.name),
                    hint: "`everscan job artifact files` lists what is in an artifact".to_owned(),
                });
            }
            vec![name.to_owned()]
        }
    };
    let mut found = Found::new()?;
    for name in &names {
        let artifact = newer.name.clone();
        let too_many = || {
            let why = format!("{name} has more than 3,500,000 different lines, old and new");
            not_compared(&artifact, why)
        };
        let mut seen = Seen::up_to(limits::LINES);
        if let Some(older) = &mut older {
            older.read(name, |line| {
                seen.insert(line).map(drop).ok_or_else(too_many)
            })?;
        }
        let content = newer.read(name, |line| {
            if seen.insert(line).ok_or_else(too_many)? {
                found.add(line)?;
            }
            Ok(())
        })?;
        match (content, only) {
            (Content::Other, Some(_)) => {
                return Err(not_compared(&newer.name, format!("{name} is not text")));
            }
            (Content::Other, None) => {
                terminal.report(&format!("{name} is not text; it is left out"));
            }
            (Content::Text | Content::Missing, _) => {}
        }
    }
    found.print(terminal)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Text,
    Other,
    Missing,
}

impl Fetched {
    fn of(name: &str, file: File, size: u64) -> Result<Self, Error> {
        let broken = |source| Error::NotUnpacked {
            artifact: name.to_owned(),
            source,
        };
        let mut archive = ZipArchive::new(file).map_err(broken)?;
        if archive.len() > limits::UNPACKED_ENTRIES {
            let why = "it has more than 1,000,000 entries".into();
            return Err(broken(ZipError::InvalidArchive(why)));
        }
        let mut files = BTreeMap::new();
        for at in 0..archive.len() {
            let entry = archive.by_index_raw(at).map_err(broken)?;
            if entry.is_file() {
                files.insert(entry.name().map_err(broken)?.into_owned(), at);
            }
        }
        Ok(Self {
            name: name.to_owned(),
            archive,
            files,
            limit: most_bytes(size),
            left: most_bytes(size),
        })
    }

    /// Passes on the lines of a file, without their ends. A file that is not text has no lines.
    fn read(
        &mut self,
        file: &str,
        mut each: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<Content, Error> {
        let Some(at) = self.files.get(file) else {
            return Ok(Content::Missing);
        };
        let broken = |source| Error::NotUnpacked {
            artifact: self.name.clone(),
            source,
        };
        let mut entry = self.archive.by_index(*at).map_err(broken)?;
        let mut head = Vec::new();
        (&mut entry)
            .take(HEAD)
            .read_to_end(&mut head)
            .map_err(|error| broken(error.into()))?;
        if head.contains(&0) {
            return Ok(Content::Other);
        }
        let mut rest = Cursor::new(head).chain(BufReader::new(entry));
        let mut line = Vec::new();
        loop {
            let size = next_line(&mut rest, &mut line).map_err(|error| broken(error.into()))?;
            if size == 0 {
                return Ok(Content::Text);
            }
            if line.len() > limits::LINE {
                let why = format!("{file} has a line of more than 1 MiB");
                return Err(not_compared(&self.name, why));
            }
            self.left = self.left.checked_sub(size).ok_or_else(|| {
                let limit = bytes(self.limit);
                not_compared(&self.name, format!("it has more than {limit} unpacked"))
            })?;
            each(&line)?;
        }
    }
}

/// Reads a line without its end, at most one byte more than allowed. Returns the number of bytes read; 0 at the end of the file.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let most = u64::try_from(limits::LINE).unwrap_or(u64::MAX);
    let mut reader = reader.take(most.saturating_add(1));
    let size = reader.read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(u64::try_from(size).unwrap_or(u64::MAX))
}

/// Half of a SHA-256: enough that no two of a few million lines collide.
type LineDigest = [u8; 16];

struct Seen {
    digests: HashSet<LineDigest>,
    most: usize,
}

impl Seen {
    fn up_to(most: usize) -> Self {
        Self {
            digests: HashSet::new(),
            most,
        }
    }

    /// True if the line is new. `None` if there are too many lines.
    fn insert(&mut self, line: &[u8]) -> Option<bool> {
        let mut digest = LineDigest::default();
        for (to, from) in digest.iter_mut().zip(Sha256::digest(line)) {
            *to = from;
        }
        let is_new = self.digests.insert(digest);
        (self.digests.len() <= self.most).then_some(is_new)
    }
}

fn not_compared(artifact: &str, why: String) -> Error {
    Error::NotCompared {
        artifact: artifact.to_owned(),
        why,
    }
}

/// The new lines, in a temporary file without a name.
struct Found {
    file: io::BufWriter<File>,
    lines: u64,
}

impl Found {
    fn new() -> Result<Self, Error> {
        let file = tempfile::tempfile().map_err(Self::failed)?;
        Ok(Self {
            file: io::BufWriter::new(file),
            lines: 0,
        })
    }

    fn failed(source: io::Error) -> Error {
        Error::Write {
            path: std::env::temp_dir(),
            source,
        }
    }

    fn add(&mut self, line: &[u8]) -> Result<(), Error> {
        self.lines = self.lines.saturating_add(1);
        self.file
            .write_all(line)
            .and_then(|()| self.file.write_all(b"\n"))
            .map_err(Self::failed)
    }

    fn print(self, terminal: &mut Terminal) -> Result<u64, Error> {
        let mut file = self
            .file
            .into_inner()
            .map_err(|error| Self::failed(error.into_error()))?;
        file.rewind().map_err(Self::failed)?;
        let (mut reader, mut line) = (BufReader::new(file), Vec::new());
        while next_line(&mut reader, &mut line).map_err(Self::failed)? > 0 {
            line.push(b'\n');
            terminal.bytes(&line)?;
        }
        Ok(self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_new_only_once_and_the_set_is_limited() {
        let mut seen = Seen::up_to(2);
        let found = ["a", "", "a", "b", "a"].map(|line| seen.insert(line.as_bytes()));
        assert_eq!(found, [Some(true), Some(true), Some(false), None, None]);
    }
}
