//! Takes and restores backups of the state folder. The daemon may run while a backup is taken.

use std::path::Path;

use store::Key;
use store::backup::{Copied, CopyError, Copying};

use crate::layout::{Layout, RecordPlace, is_mirror};

/// Copies the state folder `root` to the empty folder `to`. Mirrors of repositories are not copied: the next poll
/// fetches them again.
pub fn back_up(root: &Path, to: &Path, is_stopped: &dyn Fn() -> bool) -> Result<Copied, CopyError> {
    store::backup::back_up(root, to, copying(is_stopped))
}

/// Puts a backup into the empty folder `root`. The next opening of the state ends the jobs that ran when the backup was
/// taken.
pub fn restore(
    from: &Path,
    root: &Path,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Copied, CopyError> {
    store::backup::restore(from, root, copying(is_stopped))
}

fn copying(is_stopped: &dyn Fn() -> bool) -> Copying<'_> {
    Copying {
        leave_out: &is_mirror,
        counts_on: &log_of_record,
        is_stopped,
    }
}

/// The log whose lines are counted in the job record at `key`.
fn log_of_record(key: &Key) -> Option<Key> {
    let job = RecordPlace::Job.word(key, "job")?;
    (Layout::job(job) == *key).then(|| Layout::log(job))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{mirror_folder, mirrors_folder};

    #[test]
    fn only_mirrors_are_recognized_as_mirrors() {
        let root = Path::new("/state");
        let mirror = mirror_folder(&mirrors_folder(root), &"recon".parse().unwrap());
        assert!(is_mirror(mirror.strip_prefix(root).unwrap()));
        assert!(is_mirror(Path::new("sources/recon/mirror.git.old")));
        for other in [
            "sources/mirror.git",
            "sources/recon/tips",
            "jobs/x/mirror.git",
        ] {
            assert!(!is_mirror(Path::new(other)), "{other}");
        }
    }
}
