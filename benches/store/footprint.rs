//! The disk space of a finished job that did nothing.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::fleet::{Fleet, NOTHING, scan};

const JOBS: usize = 5_000;

/// Files, folders and allocated bytes below a folder.
#[derive(Clone, Copy, Default)]
struct Footprint {
    files: u64,
    folders: u64,
    bytes: u64,
}

pub(crate) fn finished_job() {
    let folder = crate::folder();
    let root = folder.path().join("state");
    let runtime = crate::runtime();
    runtime.block_on(async {
        let (fleet, closing) = Fleet::open(&root, NOTHING).await;
        for _ in 0..JOBS {
            fleet.finish_one(&scan("nothing")).await;
        }
        fleet.close(closing).await;
    });
    let (mut jobs, mut scans) = (Footprint::default(), Footprint::default());
    jobs.add(&root.join("jobs"));
    scans.add(&root.join("workflows"));
    let per_job = |of: u64| of as f64 / JOBS as f64;
    println!(
        "a finished job, of {JOBS}            {:>6.2} files  {:.2} folders  {:.1} KB allocated  (histories: {:.2} KB)",
        per_job(jobs.files + scans.files),
        per_job(jobs.folders),
        per_job(jobs.bytes + scans.bytes) / 1_000.0,
        per_job(scans.bytes) / 1_000.0
    );
}

impl Footprint {
    fn add(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            self.bytes += metadata.blocks() * 512;
            if metadata.is_dir() {
                self.folders += 1;
                self.add(&path);
            } else {
                self.files += 1;
            }
        }
    }
}
