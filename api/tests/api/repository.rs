//! The Git repository that the daemon of the tests follows.

use std::fs;
use std::path::Path;

use git2::{Repository, RepositoryInitOptions, Signature, Time};

/// Makes commits with exactly these files, and moves `main` to the last commit. Creates a missing repository.
pub(crate) fn push(path: &Path, commits: &[&[(&str, &str)]]) {
    let repository = if path.exists() {
        Repository::open(path).unwrap()
    } else {
        fs::create_dir_all(path).unwrap();
        let mut options = RepositoryInitOptions::new();
        options
            .bare(true)
            .external_template(false)
            .initial_head("main");
        Repository::init_opts(path, &options).unwrap()
    };
    let mut tip = repository.refname_to_id("refs/heads/main").ok();
    for files in commits {
        tip = Some(commit(&repository, tip, files));
    }
    let tip = tip.expect("a commit");
    repository
        .reference("refs/heads/main", tip, true, "push")
        .unwrap();
}

fn commit(repository: &Repository, parent: Option<git2::Oid>, files: &[(&str, &str)]) -> git2::Oid {
    let parent = parent.map(|id| repository.find_commit(id).unwrap());
    let mut index = git2::Index::new().unwrap();
    for (path, text) in files {
        let id = repository.blob(text.as_bytes()).unwrap();
        index.add(&entry(path, id)).unwrap();
    }
    let tree = index.write_tree_to(repository).unwrap();
    let tree = repository.find_tree(tree).unwrap();
    let author = Signature::new("Ada", "ada@example.org", &Time::new(1_790_000_000, 0)).unwrap();
    let parents: Vec<_> = parent.iter().collect();
    repository
        .commit(None, &author, &author, "Change it\n", &tree, &parents)
        .unwrap()
}

fn entry(path: &str, id: git2::Oid) -> git2::IndexEntry {
    git2::IndexEntry {
        ctime: git2::IndexTime::new(0, 0),
        mtime: git2::IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}
