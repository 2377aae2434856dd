//! A separate file system on a loop device, so that unmounting it empties its cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

pub(crate) struct Image {
    folder: TempDir,
    device: String,
}

impl Image {
    /// Creates and mounts a file system of this size for this many files. An error has the reason why it cannot.
    pub(crate) fn mount(bytes: u64, files: u64) -> Result<Self, String> {
        let folder = crate::folder();
        let file = folder.path().join("image");
        std::fs::File::create(&file)
            .unwrap()
            .set_len(bytes)
            .unwrap();
        let file = file.display().to_string();
        let files = files.to_string();
        run("mkfs.ext4", &["-q", "-F", "-N", &files, &file])?;
        // Without direct I/O, reads would hit the cache of the image file instead of the disk.
        let device = run("losetup", &["--find", "--show", "--direct-io=on", &file])?;
        let image = Self {
            folder,
            device: device.trim().to_owned(),
        };
        std::fs::create_dir(image.root()).unwrap();
        image.attach()?;
        Ok(image)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("mount")
    }

    /// Empties the cache of the file system.
    pub(crate) fn forget(&self) -> Result<(), String> {
        self.detach()?;
        self.attach()
    }

    fn attach(&self) -> Result<(), String> {
        run("mount", &[&self.device, &path(&self.root())]).map(drop)
    }

    fn detach(&self) -> Result<(), String> {
        run("umount", &[&path(&self.root())]).map(drop)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = self.detach();
        let _ = run("losetup", &["--detach", &self.device]);
    }
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!(
            "{program}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    }
}
