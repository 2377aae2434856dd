//! The lines of an artifact that the success before did not have.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{Cursor, Read};

use bytes::Bytes;
use model::{Artifact, Job, JobId};
use state::State;
use tokio::sync::Semaphore;
use zip::ZipArchive;

/// The most bytes of an artifact, packed and unpacked.
const MOST: u64 = 16 * 1024 * 1024;

/// Lines that a message shows.
pub(crate) const SHOWN: usize = 50;

/// Bytes at the start of a file that distinguish text from other content, as in Git.
const HEAD: u64 = 8_000;

/// Artifacts are compared one after the other, because this takes memory.
static ROOM: Semaphore = Semaphore::const_new(1);

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NewLines {
    pub(crate) count: usize,
    /// The first ones.
    pub(crate) first: Vec<String>,
}

/// Reads both artifacts. An error says why they cannot be compared.
pub(crate) async fn new_lines(
    state: &State,
    job: &Job,
    name: &str,
    previous: Option<JobId>,
) -> Result<NewLines, String> {
    let _room = ROOM.acquire().await;
    let newer = read(state, job, name).await?;
    let newer = newer.ok_or("the job has no such artifact")?;
    let older = match previous {
        None => None,
        Some(previous) => {
            let gone = || "the success before is gone".to_owned();
            let before = state.job(previous).await.map_err(|_| gone())?;
            read(state, &*before.ok_or_else(gone)?, name).await?
        }
    };
    let comparing = tokio::task::spawn_blocking(move || compare(newer, older));
    comparing.await.map_err(|error| error.to_string())?
}

/// The zip of an artifact. None if the job has stored no artifact of this name.
async fn read(state: &State, job: &Job, name: &str) -> Result<Option<Bytes>, String> {
    let run = job.state.run();
    let mut artifacts = run.into_iter().flat_map(|run| &run.artifacts);
    let Some(Artifact { size, sha256, .. }) = artifacts.find(|artifact| artifact.name == name)
    else {
        return Ok(None);
    };
    let length = usize::try_from(*size).ok().filter(|_| *size <= MOST);
    let length = length.ok_or_else(too_large)?;
    let damaged = |_| "an artifact cannot be read".to_owned();
    let opened = state.open_artifact(job.id, name).await.map_err(damaged)?;
    let opened = opened.ok_or("an artifact was removed")?;
    let read = opened.checked(sha256, *size).read(0, length).await;
    Ok(Some(read.map_err(damaged)?.1))
}

fn too_large() -> String {
    "an artifact has more than 16 MiB".to_owned()
}

fn compare(newer: Bytes, older: Option<Bytes>) -> Result<NewLines, String> {
    let hasher = RandomState::new();
    let mut seen = HashSet::new();
    if let Some(older) = older {
        each_line(older, |line| {
            seen.insert(hasher.hash_one(line));
        })?;
    }
    let mut found = NewLines::default();
    each_line(newer, |line| {
        if seen.insert(hasher.hash_one(line)) {
            found.count += 1;
            if found.count <= SHOWN {
                found.first.push(String::from_utf8_lossy(line).into_owned());
            }
        }
    })?;
    Ok(found)
}

/// Passes on the lines of all files of text in a zip, except for blank ones.
fn each_line(zip: Bytes, mut each: impl FnMut(&[u8])) -> Result<(), String> {
    let damaged = "an artifact cannot be unpacked";
    let mut archive = ZipArchive::new(Cursor::new(zip)).map_err(|_| damaged)?;
    let mut left = MOST;
    for at in 0..archive.len() {
        let mut entry = archive.by_index(at).map_err(|_| damaged)?;
        let mut content = Vec::new();
        let mut head = (&mut entry).take(HEAD);
        head.read_to_end(&mut content).map_err(|_| damaged)?;
        if content.contains(&0) {
            continue;
        }
        let mut rest = entry.take(left + 1);
        rest.read_to_end(&mut content).map_err(|_| damaged)?;
        left = left
            .checked_sub(content.len() as u64)
            .ok_or_else(too_large)?;
        for line in content.split(|byte| *byte == b'\n') {
            let line = line.trim_ascii_end();
            if !line.is_empty() {
                each(line);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn zip(files: &[(&str, &[u8])]) -> Bytes {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in files {
            let options = SimpleFileOptions::default();
            zip.start_file(*name, options).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap().into_inner().into()
    }

    fn first(lines: &[&str]) -> Result<NewLines, String> {
        Ok(NewLines {
            count: lines.len(),
            first: lines.iter().map(|line| (*line).to_owned()).collect(),
        })
    }

    #[test]
    fn only_lines_of_text_that_no_old_file_has_are_new() {
        let old = zip(&[("a", b"one\ntwo\n"), ("b", b"three")]);
        let new = zip(&[
            ("a", b"three\r\nfour\n\none"),
            ("c", b"\0five\n"),
            ("d", b"four\nsix\xff\n"),
        ]);
        assert_eq!(
            compare(new.clone(), Some(old)),
            first(&["four", "six\u{fffd}"])
        );
        assert_eq!(compare(new.clone(), Some(new.clone())), first(&[]));
        assert_eq!(
            compare(new, None),
            first(&["three", "four", "one", "six\u{fffd}"])
        );
    }

    #[test]
    fn the_first_50_lines_are_kept_and_a_bomb_is_refused() {
        let many: String = (0..60).map(|number| format!("{number}\n")).collect();
        let found = compare(zip(&[("a", many.as_bytes())]), None).unwrap();
        assert_eq!((found.count, found.first.len()), (60, SHOWN));
        let half = vec![b'a'; 9 * 1024 * 1024];
        let bomb = zip(&[("a", &half), ("b", &half)]);
        assert_eq!(compare(bomb, None), Err(too_large()));
        let broken = compare(Bytes::from_static(b"PK"), None);
        assert_eq!(broken, Err("an artifact cannot be unpacked".to_owned()));
    }
}
