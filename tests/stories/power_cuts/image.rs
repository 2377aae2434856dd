//! A file system in a file, whose power can be cut: the kernel then drops all unwritten data, like
//! a machine that loses power.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::run;
use crate::support::eventually;

/// Size of the sparse file. From 512 MB on, `mkfs` lays out an ext4 as on a real disk.
const SIZE: u64 = 2 * 1024 * 1024 * 1024;

#[derive(Clone, Copy, Debug)]
pub(crate) enum FileSystem {
    Ext4,
    /// Without the heuristic that writes a file before it is renamed over another file.
    Ext4NoAutoDaAlloc,
    /// Like this, and content may be written after its name.
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

/// Mounted unless its power was cut. Its loop device is removed with the mount.
pub(crate) struct Image {
    file_system: FileSystem,
    file: PathBuf,
    at: PathBuf,
}

impl Image {
    /// A new file system, mounted at `at`. An error has the reason why this machine cannot mount it.
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

    /// Mounts it; the kernel recovers it first.
    pub(crate) fn mount(&self) -> Result<(), String> {
        let mut mount = Command::new("mount");
        mount.args(["-o", self.file_system.options()]);
        run(mount.arg(&self.file).arg(&self.at))
    }

    /// From now on nothing reaches the disk, not even metadata that the file system has in memory.
    /// Despite its name, the program also works for ext4.
    pub(crate) fn cut_power(&self) {
        let mut shutdown = Command::new("xfs_io");
        run(shutdown.args(["-x", "-c", "shutdown"]).arg(&self.at)).unwrap();
    }

    /// Unmounts it after its processes have ended.
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
