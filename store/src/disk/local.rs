//! The file system of the machine. Folders get mode 0700 and files 0600.

#![expect(
    clippy::disallowed_methods,
    reason = "the only module that writes files of the state"
)]

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

use super::backend::{FileSystem, Kind, OpenFile, Opening, Space};
use super::inspect::Details;

/// Zeros written at once when a file is filled.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalFileSystem;

impl FileSystem for LocalFileSystem {
    fn open(&self, path: &Path, opening: Opening) -> io::Result<Box<dyn OpenFile>> {
        let mut options = OpenOptions::new();
        options.read(true).mode(0o600);
        match opening {
            // Without this, opening a pipe would block; now it reads as empty.
            Opening::Read => {
                options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
            }
            Opening::Write => {
                options.write(true);
            }
            Opening::WriteOrCreate => {
                options.write(true).create(true).truncate(false);
            }
            Opening::CreateNew => {
                options.write(true).create_new(true);
            }
        }
        Ok(Box::new(options.open(path)?))
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<(String, Kind)>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let kind = if entry.file_type()?.is_dir() {
                Kind::Folder
            } else {
                Kind::File
            };
            if let Ok(name) = entry.file_name().into_string() {
                entries.push((name, kind));
            }
        }
        Ok(entries)
    }

    fn inspect(&self, path: &Path) -> io::Result<Details> {
        Details::of(&fs::symlink_metadata(path)?)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(Space {
            total: stat.f_blocks.saturating_mul(stat.f_frsize),
            free: stat.f_bavail.saturating_mul(stat.f_frsize),
            files: stat.f_files,
            free_files: stat.f_favail,
        })
    }

    fn network(&self, path: &Path) -> io::Result<Option<&'static str>> {
        // The numbers have 32 bits, but width and sign of the field depend on the platform.
        let kind = rustix::fs::statfs(path)?.f_type as u64 & 0xffff_ffff;
        let found = NETWORK.iter().find(|(number, _)| *number == kind);
        Ok(found.map(|(_, name)| *name))
    }
}

/// Network file systems, by their numbers in `statfs(2)`. FUSE is not included, because it may be local.
const NETWORK: [(u64, &str); 8] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0x5346_414f, "AFS"),
    (0x7375_7245, "Coda"),
    (0x564c, "NCP"),
    (0x0102_1997, "9P"),
];

impl OpenFile for File {
    fn inspect(&self) -> io::Result<Details> {
        Details::of(&self.metadata()?)
    }

    fn read_at(&self, at: u64, limit: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; limit];
        let mut filled = 0;
        while filled < limit {
            match FileExt::read_at(self, &mut bytes[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn set_modified(&self, at: SystemTime) {
        let _ = File::set_modified(self, at);
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        match rustix::fs::fallocate(self, rustix::fs::FallocateFlags::empty(), 0, size) {
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        let mut at = 0;
        while at < size {
            let count = (size - at).min(ZEROS.len() as u64);
            self.write_all_at(&ZEROS[..count as usize], at)?;
            at += count;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn start_writeback(&self, at: u64, len: u64) {
        // Linux starts to write dirty pages and keeps them in memory, and drops clean pages of the range.
        let advice = rustix::fs::Advice::DontNeed;
        // Only the sync gives a guarantee, and it reports errors.
        let _ = rustix::fs::fadvise(self, at, std::num::NonZeroU64::new(len), advice);
    }

    fn sync_file_system(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(self)?)
    }

    fn try_lock(&self) -> io::Result<bool> {
        match File::try_lock(self) {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_disk_is_not_a_network_file_system() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(LocalFileSystem.network(folder.path()).unwrap(), None);
        let missing = LocalFileSystem.network(&folder.path().join("missing"));
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
