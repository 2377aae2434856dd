//! Packs the files of an artifact into a zip. Its bytes depend only on names, modes and contents. Also computes the content
//! digest, which `has_diff` compares. The worker uploads the zip.

mod collect;
mod left_out;
mod pack;
mod progress;

use std::io;
use std::path::PathBuf;

pub(crate) use left_out::Oddity;
pub(crate) use pack::{Packed, pack};
pub(crate) use progress::Progress;

/// Why an artifact cannot be packed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArtifactError {
    /// The path leads out of the job's folder.
    #[error("path {path:?} must be relative and stay inside the job's folder")]
    Outside {
        /// As the scan declares it.
        path: String,
    },
    /// The path does not exist.
    #[error("path {path:?} does not exist")]
    Missing {
        /// As the scan declares it.
        path: String,
    },
    /// The pattern cannot be read.
    #[error("pattern {path:?} cannot be read: {problem}")]
    Pattern {
        /// As the scan declares it.
        path: String,
        /// Why.
        problem: String,
    },
    /// No file has such a name.
    #[error("pattern {path:?} matches no file")]
    NoMatch {
        /// As the scan declares it.
        path: String,
    },
    /// Too many files and folders to look at.
    #[error(
        "pattern {path:?} has to look at more than {limit} files and folders; begin it with a folder"
    )]
    TooWide {
        /// As the scan declares it.
        path: String,
        /// The bound.
        limit: usize,
    },
    /// A link out of the job's folder.
    #[error("{name:?} is a link out of the job's folder")]
    LinkOutside {
        /// Relative to the job's folder.
        name: String,
    },
    /// A file that cannot be packed. It fails an artifact if it is a declared path itself, or the artifact is strict.
    #[error("{name:?} {oddity}")]
    Odd {
        /// Relative to the job's folder, with replacements for what is not UTF-8.
        name: String,
        /// Why.
        oddity: Oddity,
    },
    /// Too many entries.
    #[error("more than {limit} entries; pack them into one file first")]
    TooMany {
        /// The bound.
        limit: usize,
    },
    /// Folders too deep.
    #[error("{name:?} is more than {limit} folders deep")]
    TooDeep {
        /// Relative to the job's folder.
        name: String,
        /// The bound.
        limit: usize,
    },
    /// The job had to stop.
    #[error("stopped before it was complete")]
    Stopped,
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The zip cannot be written.
    #[error("cannot write the zip")]
    Write(#[source] io::Error),
}

#[cfg(test)]
mod tests;
