//! The folder `.everscan`, in which `up` keeps everything between two runs.

#![expect(
    clippy::disallowed_methods,
    reason = "small files next to the state; each lost file is created again"
)]

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::UpError;
use crate::programs;

#[derive(Debug, Clone)]
pub(super) struct Home {
    root: PathBuf,
}

impl Home {
    /// Makes `.everscan` in the folder and hides it from Git. Only the process that [occupies](Self::occupy) the folder may use
    /// its contents.
    pub(super) fn open(folder: &Path) -> Result<Self, UpError> {
        let unusable = |source: io::Error| {
            let path = folder.to_owned();
            match source.kind() {
                io::ErrorKind::NotFound => UpError::Missing { path },
                _ => UpError::Folder { path, source },
            }
        };
        let home = Self {
            root: folder.canonicalize().map_err(unusable)?,
        };
        let prepared = || {
            make_folder(&home.bin())?;
            std::fs::write(home.own().join(".gitignore"), "*\n")
        };
        prepared().map_err(UpError::folder(&home.own()))?;
        Ok(home)
    }

    /// Locks the folder for this process while the returned file is open, and links the programs.
    pub(super) fn occupy(&self) -> Result<File, UpError> {
        let own = self.own();
        let unusable = UpError::folder(&own);
        let mut held = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.own().join("lock"))
            .map_err(unusable)?;
        match held.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let process = io::read_to_string(held).unwrap_or_default();
                return Err(UpError::Running {
                    address: self.address(),
                    process: process.trim().parse().ok(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        held.set_len(0)
            .and_then(|()| writeln!(held, "{}", std::process::id()))
            .and_then(|()| programs::link(&self.bin()))
            .map_err(unusable)?;
        Ok(held)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn own(&self) -> PathBuf {
        self.root.join(".everscan")
    }

    pub(super) fn bin(&self) -> PathBuf {
        self.own().join("bin")
    }

    pub(super) fn state(&self) -> PathBuf {
        self.own().join("state")
    }

    /// The file of the daemon's first token, which has all scopes.
    pub(super) fn first_token(&self) -> PathBuf {
        self.state().join("initial-admin-token")
    }

    /// The file of the key that seals secrets. It is outside of the state, so that a copy of the state contains no readable
    /// secret.
    pub(super) fn secret_key(&self) -> PathBuf {
        self.own().join("secret-key")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.own().join("log")
    }

    pub(super) fn address(&self) -> Option<SocketAddr> {
        let text = std::fs::read_to_string(self.address_file()).ok()?;
        text.trim().parse().ok()
    }

    pub(super) fn keep_address(&self, address: SocketAddr) -> io::Result<()> {
        std::fs::write(self.address_file(), format!("{address}\n"))
    }

    /// The token for steps that an earlier release has kept here.
    pub(super) fn step_token(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.step_token_file()).ok()?;
        Some(text.trim().to_owned())
    }

    pub(super) fn remove_step_token(&self) -> io::Result<()> {
        std::fs::remove_file(self.step_token_file())
    }

    fn address_file(&self) -> PathBuf {
        self.own().join("address")
    }

    fn step_token_file(&self) -> PathBuf {
        self.own().join("step-token")
    }
}

pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, Instant};

    use super::*;

    /// Longer than the busiest machine needs. Tests wait this long only if the code is broken.
    const PATIENCE: Duration = Duration::from_secs(180);

    #[test]
    fn kept_values_are_private_and_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        assert_eq!(home.address(), None);
        let address: SocketAddr = "127.0.0.1:7".parse().unwrap();
        home.keep_address(address).unwrap();

        let home = Home::open(folder.path()).unwrap();
        let _held = home.occupy().unwrap();
        assert_eq!(home.address(), Some(address));
        assert!(home.bin().join("everscan").exists());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&home.own()), 0o700);
    }

    #[test]
    fn a_second_process_is_refused_with_the_id_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let held = home.occupy().unwrap();
        home.keep_address("127.0.0.1:7".parse().unwrap()).unwrap();
        let error = home.occupy().unwrap_err().to_string();
        let process = format!("(process {})", std::process::id());
        assert!(error.contains("http://127.0.0.1:7 "), "{error}");
        assert!(error.contains(&process), "{error}");
        drop(held);
        // Another test may be starting a program at this moment. The new process holds a copy of the lock until its `exec`.
        let began = Instant::now();
        while let Err(error) = home.occupy() {
            assert!(matches!(error, UpError::Running { .. }), "{error}");
            assert!(began.elapsed() < PATIENCE, "{error}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = Home::open(Path::new("/no/such/folder")).unwrap_err();
        assert!(error.to_string().contains("/no/such/folder"));
    }
}
