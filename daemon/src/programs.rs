//! The three names of this file.

use std::io;
use std::path::Path;

const NAMES: [&str; 3] = ["everscand", "everscan", "everscan-runner"];

/// Links this file under all its names into the folder `bin`, which must exist. Replaces older links, because the file may have
/// been moved.
pub(crate) fn link(bin: &Path) -> io::Result<()> {
    let own = std::env::current_exe()?;
    for name in NAMES {
        let link = bin.join(name);
        match std::fs::remove_file(&link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        std::os::unix::fs::symlink(&own, &link)?;
    }
    Ok(())
}
