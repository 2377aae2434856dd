//! This one file under its three names.

use std::io;
use std::path::Path;

/// The names it is called by.
const NAMES: [&str; 3] = ["everscand", "everscan", "everscan-runner"];

/// Links this program's file under all its names into `bin`, which must be there; older links are replaced, since the
/// file may have moved.
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
