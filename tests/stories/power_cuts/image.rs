//! A file system in a file, whose power can be cut: the kernel then drops whatever it has not written, as a machine
//! that goes dark does.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::run;
use crate::support::eventually;

/// Bytes of the file, which has holes. From 512 MB on `mkfs` lays out an ext4 as it does on a real disk.
const SIZE: u64 = 2 * 1024 * 1024 * 1024;

#[derive(Clone, Copy, Debug)]
pub(crate) enum FileSystem {
    Ext4,
    /// Without the heuristic that writes a file before it is renamed over another one.
    Ext4NoAutoDaAlloc,
    /// The same, and content may be written after the names that lead to it.
    Ext4Writeback,
    Xfs,
}

impl FileSystem {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Ext4NoAutoDaAlloc => "ext4 noauto_da_alloc",
            Self::Ext4Writeback => "ext4 noauto_da_alloc,data=writeback",
            Self::Xfs => "xfs",
        }
    }

    fn make(self) -> Command {
        let (program, arguments): (_, &[&str]) = match self {
            Self::Ext4 | Self::Ext4NoAutoDaAlloc | Self::Ext4Writeback => {
                ("mkfs.ext4", &["-q", "-F"])
            }
            Self::Xfs => ("mkfs.xfs", &["-q"]),
        };
        let mut command = Command::new(program);
        command.args(arguments);
        command
    }

    const fn options(self) -> &'static str {
        match self {
            Self::Ext4 | Self::Xfs => "loop",
            Self::Ext4NoAutoDaAlloc => "loop,noauto_da_alloc",
            Self::Ext4Writeback => "loop,noauto_da_alloc,data=writeback",
        }
    }
}

/// Mounted unless its power was cut. Its loop device goes with the mount.
pub(crate) struct Image {
    file_system: FileSystem,
    file: PathBuf,
    at: PathBuf,
}

impl Image {
    /// A new file system, mounted at `at`; an error is why this machine cannot have one.
    pub(crate) fn make(file_system: FileSystem, file: &Path, at: &Path) -> Result<Self, String> {
        run(Command::new("xfs_io").arg("-V"))?;
        File::create(file).unwrap().set_len(SIZE).unwrap();
        run(file_system.make().arg(file))?;
        std::fs::create_dir(at).unwrap();
        let image = Self {
            file_system,
            file: file.to_owned(),
            at: at.to_owned(),
        };
        image.mount()?;
        Ok(image)
    }

    /// Mounts it, whereby the kernel recovers it.
    pub(crate) fn mount(&self) -> Result<(), String> {
        let mut mount = Command::new("mount");
        mount.args(["-o", self.file_system.options()]);
        run(mount.arg(&self.file).arg(&self.at))
    }

    /// From here on nothing reaches the disk, not even what the file system itself has still in memory. Despite its
    /// name the program does this to an ext4 as well.
    pub(crate) fn cut_power(&self) {
        let mut shutdown = Command::new("xfs_io");
        run(shutdown.args(["-x", "-c", "shutdown"]).arg(&self.at)).unwrap();
    }

    /// Takes it away from processes that have ended.
    pub(crate) fn unmount(&self) {
        eventually("unmounting", || {
            run(Command::new("umount").arg(&self.at)).is_ok()
        });
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        drop(run(Command::new("umount").arg("--lazy").arg(&self.at)));
    }
}
