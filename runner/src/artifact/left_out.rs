//! The files that an artifact leaves out because they cannot be packed, each with the reason. An artifact fails instead if it is
//! strict, or if such a file is a declared path.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;

use model::error_chain;
use rustix::io::Errno;
use wire::LeftOutFile;

use super::ArtifactError;
use crate::limits;

/// Why a file is not packed, or not packed completely.
#[derive(Debug)]
pub(crate) enum Oddity {
    /// A link without a target, or a circle of links.
    LinkToNothing,
    /// A link to a folder that contains the link.
    LinkToOwnFolder,
    /// A socket, pipe or device.
    Special,
    /// A name that is invalid in a zip.
    NotUtf8,
    /// The runner may not read the file, or the file was removed.
    Unreadable(io::Error),
    /// The file became shorter after its length was read. It is left out.
    Shrank,
    /// The file became longer. It is packed up to this length, which was its first length.
    Grew(u64),
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkToNothing => f.write_str("is a link to nothing"),
            Self::LinkToOwnFolder => f.write_str("is a link to a folder that it lies in"),
            Self::Special => f.write_str("is neither a file nor a folder"),
            Self::NotUtf8 => f.write_str("is not a UTF-8 name"),
            Self::Unreadable(error) => write!(f, "cannot be read: {}", error_chain(error)),
            Self::Shrank => f.write_str("became shorter while it was packed"),
            Self::Grew(length) => {
                write!(
                    f,
                    "grew while it was packed; its first {length} bytes are there"
                )
            }
        }
    }
}

/// The odd files of one artifact, by name.
#[derive(Debug)]
pub(super) struct LeftOut {
    strict: bool,
    declared: BTreeSet<String>,
    files: BTreeMap<String, Oddity>,
}

impl LeftOut {
    pub(super) const fn new(strict: bool) -> Self {
        Self {
            strict,
            declared: BTreeSet::new(),
            files: BTreeMap::new(),
        }
    }

    /// Records a path, or the folder of a pattern, that must not be left out.
    pub(super) fn declare(&mut self, name: &str) {
        self.declared.insert(name.to_owned());
    }

    /// Records an odd file and returns `None`, unless the file must not be left out. Other errors are returned.
    pub(super) fn tolerate<T>(
        &mut self,
        result: Result<T, ArtifactError>,
    ) -> Result<Option<T>, ArtifactError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(ArtifactError::Odd { name, oddity })
                if !self.strict && !self.declared.contains(name.trim_end_matches('/')) =>
            {
                self.files.insert(name, oddity);
                if self.files.len() > limits::ARTIFACT_ENTRIES {
                    let limit = limits::ARTIFACT_ENTRIES;
                    return Err(ArtifactError::TooMany { limit });
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The report for the daemon and the log.
    pub(super) fn summary(&self) -> wire::LeftOut {
        let named = self.files.iter().take(limits::NAMED_LEFT_OUT);
        let files: Vec<_> = named
            .map(|(name, oddity)| LeftOutFile {
                name: name.chars().take(limits::SHOWN_PATH_CHARS).collect(),
                reason: oddity.to_string(),
            })
            .collect();
        wire::LeftOut {
            more: (self.files.len() - files.len()) as u64,
            files,
        }
    }
}

/// The error for an unreadable file or folder. It counts as odd if the cause is the file, and not the disk or the runner.
pub(super) fn unreadable(name: &str, path: &std::path::Path, source: io::Error) -> ArtifactError {
    let is_odd = match Errno::from_io_error(&source) {
        Some(errno) => [
            Errno::NOENT,
            Errno::NOTDIR,
            Errno::ACCESS,
            Errno::PERM,
            Errno::LOOP,
            Errno::NXIO,
        ]
        .contains(&errno),
        None => false,
    };
    if is_odd {
        ArtifactError::Odd {
            name: name.to_owned(),
            oddity: Oddity::Unreadable(source),
        }
    } else {
        ArtifactError::Read {
            path: path.to_owned(),
            source,
        }
    }
}
