//! 2,000 hits per second for 10 seconds, through everything a hit goes through.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::figures::ms;
use crate::stage::{Flood, Stage};

const RATE: u32 = 2_000;
const HITS: usize = 20_000;

/// The first 100 hits of a tag in a minute are always kept.
const NAMES: usize = HITS / 100;

pub(crate) fn run() {
    let stage = Stage::new(NAMES + 1);
    // The last one has had the first hits.
    let names = stage.names[..NAMES].iter().map(|(_, name)| name.clone());
    let (before, (commits, seconds)) = (stage.recorded(), stage.commits());
    let files = stage.world.path("state/callbacks").join(&stage.server);
    let size = bytes(&files);
    let begun = Instant::now();
    Flood::start(stage.address, names.collect(), RATE, HITS).finish();
    let patience = Instant::now() + Duration::from_secs(10);
    while stage.recorded() - before < HITS as u64 && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(100));
    }
    let (took, recorded) = (begun.elapsed(), stage.recorded() - before);
    let (after, spent) = stage.commits();
    let (commits, spent) = ((after - commits) as usize, (spent - seconds) * 1_000.0);
    // Files are written soon after the commit.
    std::thread::sleep(Duration::from_secs(1));
    let size = bytes(&files) - size;
    println!(
        "  {recorded} of {HITS} hits are recorded after {:.1} s, in {commits} commits of {:.0} KB",
        took.as_secs_f64(),
        size as f64 / 1_000.0 / commits as f64
    );
    let floor = ms(bare(
        &stage.world.path("bare"),
        size as usize / commits,
        commits,
    ));
    println!(
        "  all commits: {spent:.0} ms, bare appends {floor:.0} ms, ratio {:.2} (target: at least 0.5)",
        floor / spent
    );
}

/// The bytes of all files below a folder.
fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => bytes(&path),
                false => path.metadata().unwrap().size(),
            }
        })
        .sum()
}

/// Appends so many pieces to a file, each with a sync.
fn bare(path: &Path, piece: usize, count: usize) -> Duration {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    let piece = vec![b'x'; piece];
    let begun = Instant::now();
    for _ in 0..count {
        file.write_all(&piece).unwrap();
        file.sync_data().unwrap();
    }
    begun.elapsed()
}
