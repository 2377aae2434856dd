//! A repository on another machine, reached through the `git` program.
//!
//! A listing shows the commit of the wanted reference. Objects are transferred only if the mirror lacks this commit.
//! `complaint` interprets error messages of the program.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::access::{Access, Login};
use super::calls::Calls;
use super::credentials::{self, Credentials, TokenError};
use super::limits::FetchLimits;
use super::local::near;
use super::process::CallError;
use super::program::{self, Call};
use super::reference::Kind;
use super::{CommitId, FetchError, Location, RemoteUrl, complaint, limits};

pub(super) struct RemoteSource<'a> {
    pub url: RemoteUrl,
    pub access: &'a Access,
    /// The credentials of this attempt, once they are read.
    pub credentials: OnceCell<Credentials>,
    /// True if a warning was logged that every user can read the token.
    pub warned: &'a AtomicBool,
    pub program: &'a OsStr,
    pub limits: &'a FetchLimits,
    pub calls: &'a Calls,
}

/// The commit of the wanted reference, according to the listing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub commit: CommitId,
    /// The name to request from the remote: a reference name or the commit itself.
    pub ask_for: String,
    /// The full name of the branch to which HEAD points, if HEAD is wanted and the remote reports it.
    pub head: Option<String>,
}

impl RemoteSource<'_> {
    /// Looks up the wanted reference. A fixed commit needs no listing.
    pub(super) fn resolve(&self, wanted: &Kind) -> Result<Listed, FetchError> {
        if let Kind::Commit(commit) = wanted {
            return Ok(Listed {
                commit: *commit,
                ask_for: commit.to_string(),
                head: None,
            });
        }
        let candidates = wanted.candidates();
        // With a trailing star, the pattern also matches the line with the target of an annotated tag.
        let patterns: Vec<String> = candidates.iter().map(|name| format!("{name}*")).collect();
        let listing = self.list(&patterns)?;
        let listing = Listing {
            head: listing.head.filter(|_| *wanted == Kind::Head),
            ..listing
        };
        match pick(&listing, &candidates) {
            Some(listed) => Ok(listed),
            None => Err(self.not_found(wanted)?),
        }
    }

    /// Fetches the listed reference into `mirror`, under the name `into`. If the tip has moved since the listing, the
    /// name points to the newer commit. A shallow fetch gets only the newest part of the history.
    pub(super) fn fetch_into(
        &self,
        mirror: &Path,
        listed: &Listed,
        into: &str,
        is_shallow: bool,
    ) -> Result<(), FetchError> {
        let git_dir = format!("--git-dir={}", mirror.display());
        let depth = format!("--depth={}", limits::FIRST_FETCH_DEPTH);
        let refspec = format!("+{}:{into}", listed.ask_for);
        let mut arguments = vec![git_dir.as_str(), "fetch", "--quiet", "--no-tags"];
        arguments.extend(["--no-write-fetch-head", "--no-recurse-submodules"]);
        if is_shallow {
            arguments.push(&depth);
        }
        arguments.extend(["--", self.url.as_str(), &refspec]);
        self.call(&arguments, self.limits.transfer)
            .map(|_| ())
            .map_err(|error| {
                if remove_half_written_packs(mirror) >= self.limits.bytes {
                    self.too_large(self.limits.bytes)
                } else {
                    error
                }
            })
    }

    fn list(&self, patterns: &[String]) -> Result<Listing, FetchError> {
        let mut arguments = vec!["ls-remote", "--quiet", "--symref", "--", self.url.as_str()];
        arguments.extend(patterns.iter().map(String::as_str));
        let output = self.call(&arguments, self.limits.listing)?;
        parse_listing(&output).ok_or_else(|| {
            let location = self.location();
            match has_sha256(&output) {
                true => FetchError::Sha256 { location },
                false => FetchError::GitFailed {
                    location,
                    complaint: "its listing names no SHA-1 commits".to_owned(),
                },
            }
        })
    }

    /// Refuses a program that cannot read references in reftable.
    pub(super) fn check_reads_reftable(&self) -> Result<(), FetchError> {
        let found = match self.call(&["--version"], self.limits.listing) {
            Ok(output) => String::from_utf8_lossy(&output).trim().to_owned(),
            Err(FetchError::GitMissing) => "it is not installed".to_owned(),
            Err(error) => return Err(error),
        };
        if version(&found).is_some_and(|version| version >= limits::GIT_WITH_REFTABLE) {
            return Ok(());
        }
        let location = self.location();
        Err(FetchError::Reftable { location, found })
    }

    fn not_found(&self, wanted: &Kind) -> Result<FetchError, FetchError> {
        let references: Vec<String> = self
            .list(&["refs/heads/*".to_owned(), "refs/tags/*".to_owned()])?
            .references
            .into_iter()
            .map(|(_, name)| name)
            .collect();
        let location = self.location();
        if references.is_empty() {
            return Ok(FetchError::Empty { location });
        }
        let reference = wanted.to_string();
        Ok(FetchError::ReferenceNotFound {
            location,
            near: near(&reference, &references),
            reference,
        })
    }

    fn call(&self, arguments: &[&str], deadline: Duration) -> Result<Vec<u8>, FetchError> {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        let credentials = match &self.access.login {
            None => None,
            Some(login) => Some(self.credentials(login)?),
        };
        let ca_file = self.access.ca_file.as_deref();
        if let Some(path) = ca_file {
            credentials::check_ca_file(path).map_err(|source| FetchError::CaFile { source })?;
        }
        let ended = program::run(&Call {
            program: self.program,
            arguments: &arguments,
            url: &self.url,
            credentials,
            ca_file,
            deadline,
            file_bytes: self.limits.bytes,
            calls: self.calls,
        });
        let location = self.location();
        match ended {
            Ok(ended) if ended.status.success() => Ok(ended.output),
            Ok(ended) => Err(complaint::judge(location, &ended.complaint)),
            Err(CallError::NotInstalled) => Err(FetchError::GitMissing),
            Err(CallError::TimedOut) => Err(FetchError::TimedOut {
                location,
                limit: deadline,
            }),
            Err(CallError::Stopped) => Err(FetchError::Stopped { location }),
            Err(CallError::TooMuchOutput) => Err(self.too_large(limits::LISTING_BYTES as u64)),
            Err(CallError::Io(source)) => Err(FetchError::GitNotRun { source }),
        }
    }

    /// Reads the credentials at the first call of an attempt.
    fn credentials(&self, login: &Login) -> Result<&Credentials, FetchError> {
        if let Some(read) = self.credentials.get() {
            return Ok(read);
        }
        let location = self.location();
        let read = Credentials::read(login, self.calls).map_err(|error| match error {
            TokenError::Stopped { .. } => FetchError::Stopped { location },
            error => FetchError::Token {
                location,
                source: Box::new(error),
            },
        })?;
        let is_open = read.open_to_all.is_some();
        if self.warned.swap(is_open, Ordering::Relaxed) != is_open
            && let Some(mode) = read.open_to_all
        {
            tracing::warn!(
                "{} has mode {mode:o}, so that every user of this machine can read it; `chmod o= FILE` keeps them out",
                login.token
            );
        }
        Ok(self.credentials.get_or_init(|| read))
    }

    fn too_large(&self, limit: u64) -> FetchError {
        FetchError::TooLarge {
            location: self.location(),
            limit,
        }
    }

    fn location(&self) -> Location {
        Location::Remote(self.url.clone())
    }
}

/// The first two numbers in the output of `git --version`.
pub(super) fn version(output: &str) -> Option<(u32, u32)> {
    let mut numbers = output.strip_prefix("git version ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// True if a listing has the longer object names of SHA-256.
fn has_sha256(listing: &[u8]) -> bool {
    let listing = String::from_utf8_lossy(listing);
    let mut objects = listing.lines().filter_map(|line| line.split_once('\t'));
    objects.any(|(object, _)| object.len() == 64 && object.bytes().all(|it| it.is_ascii_hexdigit()))
}

/// The references of a remote.
#[derive(Debug, PartialEq, Eq)]
struct Listing {
    references: Vec<(CommitId, String)>,
    /// The full name of the reference to which HEAD points.
    head: Option<String>,
}

/// The first listed candidate, with its commit.
fn pick(listing: &Listing, candidates: &[String]) -> Option<Listed> {
    let find = |name: &str| {
        let (commit, _) = listing
            .references
            .iter()
            .find(|(_, listed)| listed == name)?;
        Some(*commit)
    };
    candidates.iter().find_map(|name| {
        let itself = find(name)?;
        Some(Listed {
            commit: find(&format!("{name}^{{}}")).unwrap_or(itself),
            ask_for: name.clone(),
            head: listing.head.clone(),
        })
    })
}

/// Parses lines with an object, a tab and a name. The line about HEAD has `ref:` and another name instead of the
/// object. None if a line has another form.
fn parse_listing(output: &[u8]) -> Option<Listing> {
    let mut listing = Listing {
        references: Vec::new(),
        head: None,
    };
    for line in String::from_utf8_lossy(output).lines() {
        let (object, name) = line.split_once('\t')?;
        match object.strip_prefix("ref: ") {
            Some(target) if name == "HEAD" => listing.head = Some(target.to_owned()),
            Some(_) => {}
            None => listing
                .references
                .push((object.parse().ok()?, name.to_owned())),
        }
    }
    Some(listing)
}

/// Removes the files that a killed `git` leaves in a mirror, because they would fill the disk. Returns the size of the
/// largest file, which shows whether it reached the limit.
fn remove_half_written_packs(mirror: &Path) -> u64 {
    let Ok(packs) = fs::read_dir(mirror.join("objects/pack")) else {
        return 0;
    };
    let mut largest = 0;
    for entry in packs.filter_map(Result::ok) {
        if entry.file_name().as_encoded_bytes().starts_with(b"tmp_") {
            largest = largest.max(entry.metadata().map_or(0, |metadata| metadata.len()));
            // If the file stays, the next failure removes it.
            let _stays = fs::remove_file(entry.path());
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn picked(listing: &str, candidates: &[&str]) -> Option<Listed> {
        let candidates: Vec<String> = candidates.iter().map(|name| (*name).to_owned()).collect();
        pick(&parse_listing(listing.as_bytes()).unwrap(), &candidates)
    }

    #[test]
    fn a_branch_is_preferred_to_a_tag_and_a_tag_is_resolved_to_its_commit() {
        let listing =
            format!("{ONE}\trefs/heads/v1-next\n{ONE}\trefs/tags/v1\n{TWO}\trefs/tags/v1^{{}}\n");
        let candidates = ["refs/heads/v1", "refs/tags/v1"];
        let listed = |commit: &str, name: &str| Listed {
            commit: commit.parse().unwrap(),
            ask_for: name.to_owned(),
            head: None,
        };
        assert_eq!(
            picked(&listing, &candidates),
            Some(listed(TWO, "refs/tags/v1"))
        );

        let with_branch = format!("{ONE}\trefs/heads/v1\n{listing}");
        assert_eq!(
            picked(&with_branch, &candidates),
            Some(listed(ONE, "refs/heads/v1"))
        );
        assert_eq!(picked(&listing, &["HEAD"]), None);
    }

    #[test]
    fn a_malformed_listing_is_refused() {
        let empty = Listing {
            references: Vec::new(),
            head: None,
        };
        assert_eq!(parse_listing(b""), Some(empty));
        let with_head = format!("ref: refs/heads/trunk\tHEAD\n{ONE}\tHEAD\n");
        let listed = picked(&with_head, &["HEAD"]).unwrap();
        assert_eq!(listed.head.as_deref(), Some("refs/heads/trunk"));
        for wrong in ["nonsense", &ONE[1..], &format!("{ONE}{ONE}\tHEAD")] {
            assert_eq!(parse_listing(wrong.as_bytes()), None, "{wrong}");
        }
        let long = format!("ref: refs/heads/main\tHEAD\n{ONE}{}\tHEAD\n", &ONE[..24]);
        assert!(has_sha256(long.as_bytes()));
        assert!(!has_sha256(with_head.as_bytes()));
    }

    #[test]
    fn the_version_of_git_is_read() {
        for (said, expected) in [
            ("git version 2.45.0", Some((2, 45))),
            ("git version 2.39.5 (Apple Git-154)", Some((2, 39))),
            ("git version 3.0.rc1", Some((3, 0))),
            ("it is not installed", None),
            ("git version unknown", None),
        ] {
            assert_eq!(version(said), expected, "{said}");
        }
    }
}
