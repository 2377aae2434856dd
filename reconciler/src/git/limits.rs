//! The limits of this module, each with its reason. A hostile or huge repository may only affect its own source.

use std::time::Duration;

/// The depth of history fetched when a remote is mirrored for the first time: enough to relate the tips of a busy
/// month, without the decades of a large repository. Later fetches extend it without a gap.
pub(super) const FIRST_FETCH_DEPTH: u32 = 200;

/// Packs in a mirror, one per fetch, before the mirror is rebuilt. Git searches every pack for each object; with a
/// hundred packs this takes microseconds.
pub(super) const PACKS: usize = 100;

/// Bytes of the largest blob copied from a local repository. A blob is held in memory while it is copied. The limit is
/// far above that of a workflow file, so blobs that are left out are not needed.
pub(super) const COPIED_BLOB_BYTES: usize = 16 * 1024 * 1024;

/// A copy of up to this many objects stays on the calling thread, because starting threads takes longer than packing a
/// small push.
pub(super) const SINGLE_THREADED_OBJECTS: usize = 1_000;

/// Objects handled between two checks of the deadline while a copy is prepared.
pub(super) const OBJECTS_PER_DEADLINE_CHECK: usize = 256;

/// Bytes of one commit or tree object that is loaded. Such an object can hold 100,000 entries.
pub(super) const STRUCTURE_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of a reference listing: about 300,000 references.
pub(super) const LISTING_BYTES: usize = 32 * 1024 * 1024;

/// Bytes kept of the error output of `git`. The reason is in the last lines.
pub(super) const COMPLAINT_BYTES: usize = 16 * 1024;

/// Characters of an error line that are shown in a message.
pub(super) const COMPLAINT_CHARACTERS: usize = 300;

/// Bytes of a program's output that may still be read after its end: the size of the kernel's pipe.
pub(super) const PIPE_BYTES: usize = 64 * 1024;

/// Bytes of a token from its file or command. The longest tokens of cloud providers have a few thousand bytes, and a
/// wrong path must not fill memory.
pub(super) const TOKEN_BYTES: usize = 8 * 1024;

/// Time limit of a command that prints a token. The command may call a service.
pub(super) const TOKEN_COMMAND: Duration = Duration::from_secs(30);

/// Bytes of the certificates of a source's own authorities. The whole store of a system has a quarter of that.
pub(super) const CA_FILE_BYTES: usize = 1024 * 1024;

/// Characters of a user name, as in the longest e-mail address.
pub(super) const USERNAME_CHARACTERS: usize = 254;

/// Branch names suggested when a reference is not found: as many as fit on a line.
pub(super) const NEAR_NAMES: usize = 5;

/// Characters of a commit's summary and of its author. Both are shown on one line.
pub(super) const TITLE_CHARACTERS: usize = 200;

/// Commits that are listed between two tips. If there are more, only this fact is recorded.
pub(super) const SKIPPED_COMMITS: usize = 100;

/// Characters of a location or a reference, as in the longest path of the kernel.
pub(super) const NAME_CHARACTERS: usize = 4096;

/// How long a stop waits for the `git` processes that it has killed. They end at once, unless the kernel blocks them.
pub(crate) const LAST_CALLS: Duration = Duration::from_secs(5);

/// What one fetch may cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchLimits {
    /// Time for the listing of a remote's references.
    pub(crate) listing: Duration,
    pub(crate) transfer: Duration,
    pub(crate) bytes: u64,
}

impl Default for FetchLimits {
    /// A listing takes seconds if the host is well. The first transfer of a large repository over a slow line may take
    /// minutes. No repository of workflows has 2 GiB, and even a small disk has more.
    fn default() -> Self {
        FetchLimits {
            listing: Duration::from_secs(30),
            transfer: Duration::from_secs(600),
            bytes: 2 * 1024 * 1024 * 1024,
        }
    }
}

/// Limits for the files of one job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileLimits {
    pub(crate) entries: usize,
    /// Bytes of one file. It is held in memory while it is sent.
    pub(crate) file_bytes: usize,
    pub(crate) total_bytes: u64,
    /// Depth of nested folders.
    pub(crate) depth: usize,
    /// Bytes of a path. Below the limit of the kernel, so that the path fits below the folder of a job.
    pub(crate) path_bytes: usize,
}

impl Default for FileLimits {
    /// A file that was not copied because of its size is refused with its name, and a remote's file of this size likewise.
    /// The other limits exceed what a repository of workflows has, and the list still fits into a few megabytes.
    fn default() -> Self {
        FileLimits {
            entries: 50_000,
            file_bytes: COPIED_BLOB_BYTES,
            total_bytes: 1024 * 1024 * 1024,
            depth: 64,
            path_bytes: 3_000,
        }
    }
}

/// Bytes of a name in a folder: the limit of the kernel.
pub(super) const FILE_NAME_BYTES: usize = 255;

/// The first version of `git` that reads a repository with reftable.
pub(super) const GIT_WITH_REFTABLE: (u32, u32) = (2, 45);

/// Warnings about a tip that are kept.
pub(super) const WARNINGS: usize = 20;

/// Bytes of the target of a symbolic link: the limit of the kernel.
pub(super) const LINK_TARGET_BYTES: usize = 4_095;

/// What one read may load into memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadLimits {
    /// Bytes of one file; a larger one is reported as unreadable.
    pub(crate) file_bytes: usize,
    pub(crate) total_bytes: usize,
    /// Files with a workflow's extension.
    pub(crate) files: usize,
    pub(crate) entries: usize,
    /// Depth of nested folders.
    pub(crate) depth: usize,
}

impl Default for ReadLimits {
    /// The language allows 1 MiB per file. 10,000 workflows of ordinary size stay far below the other limits.
    fn default() -> Self {
        ReadLimits {
            file_bytes: workflow::limits::FILE_BYTES,
            total_bytes: 256 * 1024 * 1024,
            files: 10_000,
            entries: 200_000,
            depth: 32,
        }
    }
}
