//! Why a repository could not be fetched or read, for the person who must fix it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::access::Access;
use super::credentials::{CaFileError, TokenError};
use super::location::Protocol;
use super::{CommitId, Location, limits};

/// Why a source's tip could not be fetched into its mirror. The mirror is unchanged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// Not a fault: the repository has no commit yet.
    #[error("the repository {location} has no commit yet")]
    Empty { location: Location },
    #[error("there is no repository at {location}")]
    RepositoryMissing { location: Location },
    #[error("{location} is not a Git repository")]
    NotARepository {
        location: Location,
        #[source]
        source: git2::Error,
    },
    #[error("cannot read the repository {location}")]
    Unreadable {
        location: Location,
        #[source]
        source: io::Error,
    },
    /// Git refuses the repository of another user, because its configuration could run programs.
    #[error("the repository {location} belongs to another user")]
    ForeignOwner { location: Location },
    #[error("the repository {location} has SHA-256 object names, and only SHA-1 is supported")]
    Sha256 { location: Location },
    /// Neither libgit2 nor an older `git` can read it.
    #[error(
        "the repository {location} keeps its references as reftable, which takes `git` {} or newer: {found}",
        reftable_since()
    )]
    Reftable {
        location: Location,
        /// The installed version, or a text that none is installed.
        found: String,
    },
    #[error("the repository {location} is a partial clone: it lacks objects that its remote has")]
    PartialClone { location: Location },
    #[error("the repository {location} has no `{reference}`")]
    ReferenceNotFound {
        location: Location,
        reference: String,
        /// A few branches of the repository, the most similar names first.
        near: Vec<String>,
    },
    /// The repository refuses to serve the requested commit.
    #[error("{location} does not give out the commit: {complaint}")]
    NoSuchCommit {
        location: Location,
        complaint: String,
    },
    #[error("`{reference}` in the repository {location} does not lead to a commit")]
    NotACommit {
        location: Location,
        reference: String,
    },
    #[error("there is no token for {location}")]
    Token {
        location: Location,
        #[source]
        source: Box<TokenError>,
    },
    #[error("cannot use the configured certificates")]
    CaFile {
        #[source]
        source: CaFileError,
    },
    #[error("{location} did not accept the credentials: {complaint}")]
    AccessDenied {
        location: Location,
        complaint: String,
    },
    #[error("the identity of the host of {location} is not confirmed: {complaint}")]
    UnknownHost {
        location: Location,
        complaint: String,
    },
    #[error("{location} redirects to another address: {complaint}")]
    Redirected {
        location: Location,
        complaint: String,
    },
    #[error("cannot reach {location}: {complaint}")]
    Unreachable {
        location: Location,
        complaint: String,
    },
    #[error("{location} was not done within {} seconds", limit.as_secs())]
    TimedOut { location: Location, limit: Duration },
    #[error("the daemon stopped while it fetched {location}")]
    Stopped { location: Location },
    #[error("{location} needs more than {limit} bytes")]
    TooLarge { location: Location, limit: u64 },
    #[error("cannot copy objects out of the repository {location}")]
    SourceDamaged {
        location: Location,
        #[source]
        source: git2::Error,
    },
    #[error("the `git` program is not installed")]
    GitMissing,
    #[error("cannot run the `git` program")]
    GitNotRun {
        #[source]
        source: io::Error,
    },
    #[error("`git` could not fetch {location}: {complaint}")]
    GitFailed {
        location: Location,
        complaint: String,
    },
    #[error("cannot keep the mirror {}", dir.display())]
    Mirror {
        dir: PathBuf,
        #[source]
        source: MirrorFault,
    },
}

/// An error of the file system or object store in our own mirror.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MirrorFault {
    #[error(transparent)]
    Disk(#[from] io::Error),
    #[error(transparent)]
    Objects(#[from] git2::Error),
    #[error("commit {0} is still missing after a fetch")]
    Incomplete(CommitId),
}

impl FetchError {
    /// A hint what to do, if something can be done. `access` is the configured access of the source.
    pub(crate) fn hint(&self, access: &Access) -> Option<String> {
        let token = access.login.as_ref().map(|login| &login.token);
        let hint = match self {
            FetchError::Empty { .. } => "push a commit",
            FetchError::RepositoryMissing { .. } => match token {
                None => "check the location of the source",
                Some(from) => {
                    return Some(format!(
                        "check the location of the source, and that the token of {from} may read it: some hosts report a \
                         repository as missing if the token may not read it"
                    ));
                }
            },
            FetchError::Token { .. } | FetchError::CaFile { .. } => {
                "it is read again at the next attempt"
            }
            FetchError::NotARepository { .. } => {
                "name the top folder of a repository, or run `git init` there"
            }
            FetchError::Unreadable { .. } => "give the daemon's user read access to the repository",
            FetchError::ForeignOwner { location } => {
                return Some(format!(
                    "as the daemon's user, run `git config --global --add safe.directory {location}`"
                ));
            }
            FetchError::Sha256 { .. } => {
                "push the files to a repository made with `git init --object-format=sha1`"
            }
            FetchError::Reftable { .. } => {
                "install it, or run `git refs migrate --ref-format=files` in the repository"
            }
            FetchError::PartialClone { .. } => {
                "follow the remote itself, or clone it without `--filter`"
            }
            FetchError::ReferenceNotFound { near, .. } if near.is_empty() => return None,
            FetchError::ReferenceNotFound { near, .. } => {
                return Some(format!("there are: {}", near.join(", ")));
            }
            FetchError::NoSuchCommit { .. } => "name a commit that a branch or a tag leads to",
            FetchError::NotACommit { .. } => "name a branch, or a tag of a commit",
            FetchError::AccessDenied { location, .. } => match (token, is_ssh(location)) {
                (Some(from), _) => {
                    return Some(format!(
                        "they are from {from}: put a token there that may read the repository; it is read again at \
                         the next attempt"
                    ));
                }
                (None, false) => {
                    "name a token with `token_file`, or use ssh:// with a key of the daemon's user"
                }
                (None, true) => "give the daemon's user a key that the host accepts",
            },
            FetchError::UnknownHost { location, .. } => match (&access.ca_file, is_ssh(location)) {
                (_, true) => "compare the host's key with its owner and put it into known_hosts",
                (None, false) => {
                    "if its certificate is signed by your own authority, name the authority's certificate with `ca_file`"
                }
                (Some(path), false) => {
                    return Some(format!(
                        "put the certificate of the authority that signed the host's certificate into ca_file {}",
                        path.display()
                    ));
                }
            },
            FetchError::Redirected { .. } => "write the address it redirects to into the source",
            FetchError::SourceDamaged { .. } => "run `git fsck` in the repository",
            FetchError::GitMissing => "install git, or use a repository on this machine",
            FetchError::Mirror { .. } => "check the free space and the owner of the folder",
            FetchError::Unreachable { .. }
            | FetchError::TimedOut { .. }
            | FetchError::Stopped { .. }
            | FetchError::TooLarge { .. }
            | FetchError::GitNotRun { .. }
            | FetchError::GitFailed { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

fn reftable_since() -> String {
    let (major, minor) = limits::GIT_WITH_REFTABLE;
    format!("{major}.{minor}")
}

fn is_ssh(location: &Location) -> bool {
    matches!(location, Location::Remote(url) if url.protocol() == Protocol::Ssh)
}

/// Why a commit could not be read completely. The caller keeps its present state, because the commit's files are unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("commit {commit} is not in the mirror")]
    CommitMissing { commit: CommitId },
    #[error("`{folder}` is not a folder inside a repository")]
    Folder { folder: String },
    #[error("commit {commit} holds more than {limit} {what}")]
    TooMuch {
        commit: CommitId,
        what: &'static str,
        limit: usize,
    },
    /// The next fetch rebuilds the mirror.
    #[error("the mirror {} is damaged", dir.display())]
    Damaged {
        dir: PathBuf,
        #[source]
        source: git2::Error,
    },
}

impl ReadError {
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            ReadError::Folder { .. } => {
                Some("write a path from the top of the repository, without `..`")
            }
            ReadError::TooMuch { .. } => {
                Some("give the workflows a folder of their own and name it in the source")
            }
            ReadError::CommitMissing { .. } | ReadError::Damaged { .. } => None,
        }
    }
}
