//! The promises of a mirror, checked with real repositories.

mod damage;
mod fetching;
mod files;
mod history;
mod reading;
mod remote;

use super::{CommitId, Content, Mirror, ReadLimits, Reference, Snapshot};

fn read(mirror: &Mirror, commit: &CommitId) -> Snapshot {
    mirror
        .read(commit, "workflows", &ReadLimits::default())
        .unwrap()
}

fn paths(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.files.iter().map(|file| &*file.path).collect()
}

fn content<'a>(snapshot: &'a Snapshot, path: &str) -> &'a Content {
    &snapshot
        .files
        .iter()
        .find(|file| file.path == path)
        .unwrap()
        .content
}

fn text(snapshot: &Snapshot, path: &str) -> String {
    match content(snapshot, path) {
        Content::Text(text) => text.to_string(),
        Content::Unreadable(why) => panic!("{path}: {why}"),
    }
}

fn reference(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}
