//! The list, inside a mirror, of blobs that were too large to copy: object and size, one per line.
//!
//! It distinguishes a blob that was too large from a missing blob, which means a damaged mirror.

#![expect(
    clippy::disallowed_methods,
    reason = "Git's own files in the mirror are no records of the state"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use git2::Oid;

const FILE: &str = "everscan-left-out";

pub(super) fn read(mirror: &Path) -> io::Result<BTreeMap<Oid, usize>> {
    match fs::read_to_string(mirror.join(FILE)) {
        Ok(text) => Ok(text.lines().filter_map(parse).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error),
    }
}

/// Adds to the list. The file is replaced as a whole, so that a reader finds either the old or the new list.
pub(super) fn add(mirror: &Path, more: BTreeMap<Oid, usize>) -> io::Result<()> {
    if more.is_empty() {
        return Ok(());
    }
    let mut all = read(mirror)?;
    all.extend(more);
    let text: String = all
        .iter()
        .map(|(blob, size)| format!("{blob} {size}\n"))
        .collect();
    let beside = mirror.join(format!("{FILE}.new"));
    fs::write(&beside, text)?;
    fs::rename(beside, mirror.join(FILE))
}

fn parse(line: &str) -> Option<(Oid, usize)> {
    let (blob, size) = line.split_once(' ')?;
    Some((Oid::from_str(blob).ok()?, size.parse().ok()?))
}
