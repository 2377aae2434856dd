//! Problems of a workflow file: what is wrong, where, and what to do. Daemon, API and command show the same records. Their `code`
//! is stable, but their text is not.

mod code;
mod encoding;
mod lines;
mod render;

use serde::{Deserialize, Serialize};

use crate::limits::FILE_BYTES;

pub use code::Code;
pub use encoding::{NotUtf8, utf8};
pub use lines::LinesOfFile;
pub use render::{is_obeyed, render};

/// The file at the top of a repository that configures the repository. It is not a workflow.
pub const SETTINGS_FILE: &str = "everscan.yaml";

/// One problem of one file. Lines and columns count from 1, columns in characters; the end is exclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// The file, as its reader knows it.
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
    /// Whether the file can still be used.
    pub severity: Severity,
    pub code: Code,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error about a file as a whole, for callers without its text.
    pub fn of_file(file: &str, code: Code, message: String, hint: Option<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: 1,
            column: 1,
            end_line: 1,
            end_column: 1,
            severity: Severity::Error,
            code,
            message,
            hint,
        }
    }

    /// The error for a file that is too large. The rest of it is not read.
    pub fn too_large(file: &str) -> Self {
        let message = format!("the file has more than {FILE_BYTES} bytes");
        let hint = "put what scripts need into files or blobs, or split the workflow".to_owned();
        Self::of_file(file, Code::FileTooLarge, message, Some(hint))
    }

    /// The error for a symbolic link in a folder of workflows. Its target may be outside of the repository, and may change
    /// without a commit.
    pub fn symbolic_link(file: &str) -> Self {
        let message = "the file is a symbolic link, and links are not followed".to_owned();
        let hint = "put the file itself there".to_owned();
        Self::of_file(file, Code::UnreadableFile, message, Some(hint))
    }

    /// The error for a file that is not text, from its bytes.
    pub fn not_utf8_text(file: &str, place: NotUtf8) -> Self {
        let hint = "save it as UTF-8".to_owned();
        Self {
            line: place.line,
            column: place.column,
            end_line: place.line,
            end_column: place.column.saturating_add(1),
            ..Self::of_file(file, Code::UnreadableFile, place.to_string(), Some(hint))
        }
    }

    /// The error for a file whose name is not text; it is not read.
    pub fn not_utf8_name(file: &str) -> Self {
        let message = "the name of the file is not UTF-8".to_owned();
        let hint = "rename it".to_owned();
        Self::of_file(file, Code::UnreadableFile, message, Some(hint))
    }

    /// The warning for a submodule in a folder of workflows.
    pub fn submodule(path: &str) -> Self {
        let message = "it is a submodule, and its files are not read".to_owned();
        let hint = "follow its repository as a source of its own".to_owned();
        Self::not_read(path, message, hint)
    }

    /// The warning for a symbolic link to a folder, in a folder of workflows.
    pub fn linked_folder(path: &str) -> Self {
        let message = "it is a symbolic link to a folder, and links are not followed".to_owned();
        Self::not_read(path, message, "put the folder itself there".to_owned())
    }

    fn not_read(path: &str, message: String, hint: String) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::of_file(path, Code::NoEffect, message, Some(hint))
        }
    }

    /// The error for a file named `.yaml` or `.yml`.
    pub(crate) fn nameless(file: &str) -> Self {
        let message = "the file has no name before its extension, so its workflow would have none";
        let hint = "rename it, as in `NAME.yaml`".to_owned();
        Self::of_file(file, Code::InvalidName, message.to_owned(), Some(hint))
    }

    /// The error for a file whose content is in Git LFS.
    pub(crate) fn lfs_pointer(file: &str) -> Self {
        let message = "the file is a pointer of Git LFS: its content is not in the repository";
        let hint = "take workflow files out of LFS: `git lfs untrack`, then add them again";
        let hint = Some(hint.to_owned());
        Self::of_file(file, Code::UnreadableFile, message.to_owned(), hint)
    }

    /// Whether the problem is about the file as a whole, so that no excerpt is shown.
    fn is_of_file(&self) -> bool {
        (self.line, self.column, self.end_line, self.end_column) == (1, 1, 1, 1)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used.
    Warning,
}
