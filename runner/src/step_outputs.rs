//! The outputs of steps. Each step has an empty file, outside of what artifacts can hold, whose path is in its
//! environment. What it has written there is checked when its script has ended.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use model::Masker;
use rustix::fs::OFlags;
use workflow::{Outputs, read_outputs, with_outputs};

use crate::limits;
use crate::workdir::make_private_file;

/// The variable with the path of the file.
pub(crate) const VARIABLE: &str = "SERVICE_STEP_OUTPUTS";

/// The file of one step; removed when the value is dropped.
#[derive(Debug)]
pub(crate) struct OutputsFile(PathBuf);

impl OutputsFile {
    /// Makes the file.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn make(path: PathBuf) -> io::Result<Self> {
        make_private_file(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What the step has written. `masker` knows the secrets, which no output may hold.
    ///
    /// # Errors
    /// What is wrong, for the step's error.
    pub(crate) fn read(&self, masker: &Masker) -> Result<Outputs, String> {
        let unreadable = |error: io::Error| format!("cannot read the outputs: {error}");
        let Some(file) = self.open().map_err(unreadable)? else {
            return Ok(Outputs::new());
        };
        let mut bytes = Vec::new();
        let limit = limits::OUTPUTS_FILE_BYTES;
        file.take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 > limit {
            return Err(format!(
                "the file of the outputs has more than {limit} bytes"
            ));
        }
        let text = String::from_utf8(bytes).map_err(|_| "the outputs are not UTF-8".to_owned())?;
        let outputs = read_outputs(&text).map_err(|error| error.to_string())?;
        let holds_secret = |text: &str| masker.mask(text) != text;
        match outputs
            .iter()
            .find(|(key, value)| holds_secret(value) || holds_secret(key))
        {
            Some((key, _)) => Err(format!("output `{key}` holds a secret")),
            None => Ok(outputs),
        }
    }

    /// `None` if the step has removed it. A step may have put anything in its place, so a link is not followed, and
    /// opening a pipe does not wait.
    fn open(&self) -> io::Result<Option<File>> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(&self.0);
        match opened {
            Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
            Ok(_) => Err(io::Error::other("it is no file any more")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for OutputsFile {
    fn drop(&mut self) {
        crate::workdir::remove(&self.0);
    }
}

/// The outputs of one job so far.
#[derive(Debug, Default)]
pub(crate) struct JobOutputs(Mutex<Outputs>);

impl JobOutputs {
    /// Adds those of a step.
    ///
    /// # Errors
    /// The key that passes a bound; nothing is added then.
    pub(crate) fn add(&self, more: &Outputs) -> Result<(), String> {
        let mut outputs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *outputs = with_outputs(outputs.clone(), more).map_err(|error| error.to_string())?;
        Ok(())
    }

    /// All of them.
    pub(crate) fn all(&self) -> Outputs {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;

    fn file(folder: &TempDir) -> OutputsFile {
        OutputsFile::make(folder.path().join("outputs")).unwrap()
    }

    #[test]
    fn what_was_written_is_read_and_the_file_goes() {
        let folder = TempDir::new().unwrap();
        let outputs = file(&folder);
        assert!(outputs.read(&Masker::default()).unwrap().is_empty());
        std::fs::write(outputs.path(), "a=1\nb=2\n").unwrap();
        let read = outputs.read(&Masker::default()).unwrap();
        assert_eq!(read.into_iter().collect::<Vec<_>>().len(), 2);
        std::fs::remove_file(outputs.path()).unwrap();
        assert!(outputs.read(&Masker::default()).unwrap().is_empty());
        drop(file(&folder));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn secrets_and_other_bytes_are_refused() {
        let folder = TempDir::new().unwrap();
        let outputs = file(&folder);
        let masker = Masker::new(["hunter2hunter2"]).unwrap();
        let refused = |text: &[u8]| {
            std::fs::write(outputs.path(), text).unwrap();
            outputs.read(&masker).unwrap_err()
        };
        assert_eq!(
            refused(b"ok=1\ntoken=x hunter2hunter2"),
            "output `token` holds a secret"
        );
        assert_eq!(refused(b"a=\xff"), "the outputs are not UTF-8");
        let long = vec![b'x'; usize::try_from(limits::OUTPUTS_FILE_BYTES).unwrap() + 1];
        assert!(refused(&long).contains("more than"), "{}", refused(&long));
    }

    #[test]
    fn a_link_or_pipe_in_its_place_is_not_read() {
        let folder = TempDir::new().unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "a=1\n").unwrap();
        let outputs = file(&folder);
        let replaced = || {
            std::fs::remove_file(outputs.path()).unwrap();
            outputs.path()
        };
        symlink(&secret, replaced()).unwrap();
        assert!(outputs.read(&Masker::default()).is_err());
        let made = Command::new("mkfifo").arg(replaced()).status().unwrap();
        assert!(made.success());
        let error = outputs.read(&Masker::default()).unwrap_err();
        assert!(error.contains("no file any more"), "{error}");
    }
}
