//! Finds the programs that steps name, and explains why a program cannot be started.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// The executable that a shell would start for `program`. A path is used as it is, relative to `folder`; a bare name is
/// searched for in `path`.
pub(crate) fn find_program(program: &str, path: Option<&OsStr>, folder: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        let program = folder.join(program);
        return is_executable(&program).then_some(program);
    }
    std::env::split_paths(path?)
        .map(|entry| folder.join(entry).join(program))
        .find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Explains why an existing program cannot be started in a folder.
pub(crate) fn explain(program: &Path, folder: &Path, error: &io::Error) -> String {
    let reason = match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR) if !folder.is_dir() => {
            let folder = folder.display();
            return format!("the job's folder {folder} is gone; a step may have removed it");
        }
        Some(Errno::NOENT) if program.exists() => {
            "its interpreter, which its first line names, is missing".to_owned()
        }
        Some(Errno::NOEXEC) => {
            "it is no program of this machine, and its first line names no interpreter".to_owned()
        }
        _ => error.to_string(),
    };
    format!("cannot start {}: {reason}", program.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let folder = Path::new("/");
        let path = Some(OsStr::new("/nowhere:/bin"));
        assert_eq!(
            find_program("sh", path, folder),
            Some(PathBuf::from("/bin/sh"))
        );
        assert_eq!(
            find_program("bin/sh", path, folder),
            Some(PathBuf::from("/bin/sh"))
        );
        assert_eq!(
            find_program("/bin/sh", None, folder),
            Some(PathBuf::from("/bin/sh"))
        );
        assert_eq!(find_program("no-such-shell", path, folder), None);
        assert_eq!(find_program("sh", None, folder), None);
        assert_eq!(find_program("/bin", path, folder), None);
    }
}
