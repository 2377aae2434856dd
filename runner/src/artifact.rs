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

#[derive(Debug, thiserror::Error)]
pub(crate) enum ArtifactError {
    #[error("path {path:?} must be relative and stay inside the job's folder")]
    Outside { path: String },
    #[error("path {path:?} does not exist")]
    Missing { path: String },
    #[error("pattern {path:?} cannot be read: {problem}")]
    Pattern { path: String, problem: String },
    #[error("pattern {path:?} matches no file")]
    NoMatch { path: String },
    #[error(
        "pattern {path:?} searches more than {limit} files and folders; begin it with a folder"
    )]
    TooWide { path: String, limit: usize },
    #[error("{name:?} is a link out of the job's folder")]
    LinkOutside { name: String },
    /// A file that cannot be packed. The artifact fails if it is strict, or if the file is a declared path itself.
    #[error("{name:?} {oddity}")]
    Odd {
        /// The path relative to the job's folder, with replacements for invalid UTF-8.
        name: String,
        oddity: Oddity,
    },
    #[error("more than {limit} entries; pack them into one file first")]
    TooMany { limit: usize },
    #[error("{name:?} is more than {limit} folders deep")]
    TooDeep { name: String, limit: usize },
    #[error("stopped before it was complete")]
    Stopped,
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write the zip")]
    Write(#[source] io::Error),
}

#[cfg(test)]
mod tests;
