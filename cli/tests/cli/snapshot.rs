//! Texts that are compared with files; `UPDATE_SNAPSHOTS=1` writes the files anew.

use std::path::{Path, PathBuf};

pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cli")
        .join(name)
}

#[track_caller]
pub(crate) fn check(path: &Path, found: &str) {
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, found).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        expected == found,
        "{} differs; UPDATE_SNAPSHOTS=1 takes this text:\n{found}",
        path.display()
    );
}
