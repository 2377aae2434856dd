//! The file with the key that seals secrets. It is made on request, read at the start, and never changed.
//!
//! It is outside of the state folder, so that a copy of the state, such as a backup, contains no readable secret. A key inside
//! the state folder, or a file that other users can read, is refused.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use model::{ParseKeyError, SealingKey};
use thiserror::Error;

use crate::arguments::{SecretKeyCommand, SecretKeyOptions};
use crate::limits::KEY_FILE_BYTES;
use crate::system::SystemEntropy;

/// The mode bits for other users.
const OTHERS: u32 = 0o077;

#[derive(Debug, Error)]
pub(crate) enum KeyFileError {
    #[error(
        "there is no secret key file {}\nhint: `everscand secret-key make {}` makes one; where secrets are stored already, bring their key back instead",
        path.display(),
        path.display()
    )]
    Missing { path: PathBuf },
    #[error("cannot read the secret key file {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the secret key file {} is no such file: {source}", path.display())]
    Malformed {
        path: PathBuf,
        source: ParseKeyError,
    },
    #[error(
        "the secret key file {} has mode {mode:o}, so that others can use it\nhint: chmod 600 {}",
        path.display(),
        path.display()
    )]
    Open { path: PathBuf, mode: u32 },
    #[error(
        "the secret key file {} lies in the state folder, and every copy of the state would hold it\nhint: move it elsewhere",
        path.display()
    )]
    InState { path: PathBuf },
    #[error(
        "`{word}` is no command of `everscand secret-key`\nhint: `everscand secret-key make ./{word}` makes a key in a file of this \
         name; to rotate keys, make a new one and name the old one with `--old-secret-key-file`"
    )]
    NoCommand { word: String },
    #[error("{} exists already and is left as it is", path.display())]
    Exists { path: PathBuf },
    #[error("cannot write the secret key file {}: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
}

pub(crate) fn run(options: SecretKeyOptions) -> Result<(), KeyFileError> {
    match (options.command, options.path) {
        (Some(SecretKeyCommand::Make { path }), _) => make(&path),
        (Some(SecretKeyCommand::Id { path }), _) => {
            let key = read_anywhere(&path)?;
            // Ignore a failure: if nobody reads the id, nothing is lost.
            drop(writeln!(io::stdout(), "{}", key.id()));
            Ok(())
        }
        (None, Some(path)) => match command_like(&path) {
            Some(word) => Err(KeyFileError::NoCommand { word }),
            None => make(&path),
        },
        // The parser requires one of them.
        (None, None) => Ok(()),
    }
}

/// The path, if it is a single word that the user may have meant as a command.
fn command_like(path: &Path) -> Option<String> {
    let word = path.to_str()?;
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == '-' || letter == '_';
    word.chars().all(is_letter).then(|| word.to_owned())
}

/// Reads a key, and checks its place and its permissions.
pub(crate) fn read(path: &Path, state: &Path) -> Result<SealingKey, KeyFileError> {
    let key = read_anywhere(path)?;
    let place = fs::canonicalize(path).map_err(|source| KeyFileError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    // A missing state folder contains no files.
    if fs::canonicalize(state).is_ok_and(|state| place.starts_with(state)) {
        return Err(KeyFileError::InState {
            path: path.to_owned(),
        });
    }
    Ok(key)
}

fn read_anywhere(path: &Path) -> Result<SealingKey, KeyFileError> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => KeyFileError::Missing {
            path: path.to_owned(),
        },
        _ => KeyFileError::Unreadable {
            path: path.to_owned(),
            source,
        },
    };
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(KeyFileError::Open {
            path: path.to_owned(),
            mode,
        });
    }
    let mut text = String::new();
    file.take(KEY_FILE_BYTES)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    SealingKey::parse(&text).map_err(|source| KeyFileError::Malformed {
        path: path.to_owned(),
        source,
    })
}

/// Makes a file with a new key, which only its owner can read.
pub(crate) fn make(path: &Path) -> Result<(), KeyFileError> {
    let unwritable = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => KeyFileError::Exists {
            path: path.to_owned(),
        },
        _ => KeyFileError::Unwritable {
            path: path.to_owned(),
            source,
        },
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(unwritable)?;
    let key = SealingKey::random(&mut SystemEntropy);
    let written = writeln!(file, "{}", key.reveal()).and_then(|()| file.sync_all());
    written.map_err(unwritable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(path: &Path, state: &Path) -> String {
        read(path, state).unwrap_err().to_string()
    }

    #[test]
    fn a_key_file_is_created_once_private_and_readable() {
        let folder = tempfile::tempdir().unwrap();
        let (path, state) = (folder.path().join("key"), folder.path().join("state"));
        assert!(wrong(&path, &state).contains("everscand secret-key"));
        make(&path).unwrap();
        let key = read(&path, &state).unwrap();
        let again = make(&path).unwrap_err();
        assert!(matches!(again, KeyFileError::Exists { .. }), "{again}");
        assert_eq!(read(&path, &state).unwrap(), key);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_path_like_a_command_creates_no_key_file() {
        for (path, is_command) in [
            ("rotate", true),
            ("show-id", true),
            ("./rotate", false),
            ("secret.key", false),
            ("/srv/key", false),
        ] {
            assert_eq!(
                command_like(Path::new(path)).is_some(),
                is_command,
                "{path}"
            );
        }
        let refused = run(SecretKeyOptions {
            command: None,
            path: Some(PathBuf::from("rotate")),
        });
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("secret-key make ./rotate"), "{refused}");
        assert!(!Path::new("rotate").exists());
    }

    #[test]
    fn a_key_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        make(&path).unwrap();
        assert!(wrong(&path, folder.path()).contains("lies in the state folder"));
        let state = folder.path().join("state");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(wrong(&path, &state).contains("mode 640"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "evk_00\n").unwrap();
        assert!(wrong(&path, &state).contains("64 hexadecimal digits"));
    }
}
