//! The outputs of steps. Each step has an empty file outside of the artifacts, whose path is in its environment. After the script
//! has ended, the runner checks the content of the file.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use model::Masker;
use rustix::fs::OFlags;
use workflow::{Outputs, read_outputs, with_outputs};

use crate::limits;
use crate::workdir::open_without_links;

pub(crate) const VARIABLE: &str = "SERVICE_STEP_OUTPUTS";

/// The outputs that a step has written into its file. `masker` knows the secrets, which outputs must not contain.
pub(crate) fn read(path: &Path, masker: &Masker) -> Result<Outputs, String> {
    let unreadable = |error: io::Error| format!("cannot read the outputs: {error}");
    let Some(file) = open(path).map_err(unreadable)? else {
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

/// `None` if the step has removed the file.
fn open(path: &Path) -> io::Result<Option<File>> {
    match open_without_links(path, OFlags::RDONLY) {
        Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
        Ok(_) => Err(io::Error::other("it is no file any more")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[derive(Debug, Default)]
pub(crate) struct JobOutputs(Mutex<Outputs>);

impl JobOutputs {
    /// Adds the outputs of a step. After an error nothing is added.
    pub(crate) fn add(&self, more: &Outputs) -> Result<(), String> {
        let mut outputs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *outputs = with_outputs(outputs.clone(), more).map_err(|error| error.to_string())?;
        Ok(())
    }

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

    fn read(path: &Path) -> Result<Outputs, String> {
        super::read(path, &Masker::default())
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("outputs");
        assert!(read(&path).unwrap().is_empty());
        std::fs::write(&path, "a=1\nb=2\n").unwrap();
        assert_eq!(read(&path).unwrap().len(), 2);
    }

    #[test]
    fn secrets_and_other_bytes_are_refused() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("outputs");
        let masker = Masker::new(["hunter2hunter2"]).unwrap();
        let refused = |text: &[u8]| {
            std::fs::write(&path, text).unwrap();
            super::read(&path, &masker).unwrap_err()
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
        let path = folder.path().join("outputs");
        symlink(&secret, &path).unwrap();
        assert!(read(&path).is_err());
        std::fs::remove_file(&path).unwrap();
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let error = read(&path).unwrap_err();
        assert!(error.contains("no file any more"), "{error}");
    }
}
