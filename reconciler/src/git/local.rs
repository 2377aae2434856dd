//! Reads a repository on this machine through libgit2, without starting a process.

use std::path::{Path, PathBuf};
use std::{fs, io};

use git2::{Config, ErrorCode, ObjectType, Repository};

use super::copy::{self, CopyError};
use super::limits::FetchLimits;
use super::reference::Kind;
use super::{CommitId, FetchError, Location, RemoteUrl, limits};

pub(super) enum Opened {
    Here(LocalSource),
    /// The `git` program must read it, because libgit2 does not know how it stores references.
    Reftable(RemoteUrl),
}

/// An open repository. It is never changed.
pub(super) struct LocalSource {
    location: Location,
    repository: Repository,
}

impl LocalSource {
    pub(super) fn open(path: &Path) -> Result<Opened, FetchError> {
        let location = Location::Local(path.to_owned());
        if let Err(error) = fs::read_dir(path) {
            return Err(refused_folder(location, error));
        }
        match Repository::open(path) {
            Ok(repository) => Ok(Opened::Here(LocalSource {
                location,
                repository,
            })),
            Err(error) if error.code() == ErrorCode::Owner => {
                Err(FetchError::ForeignOwner { location })
            }
            Err(source) => match fs::read_dir(path.join(".git")) {
                Err(hidden) if hidden.kind() == io::ErrorKind::PermissionDenied => {
                    Err(FetchError::Unreadable {
                        location,
                        source: hidden,
                    })
                }
                Ok(_) | Err(_) => match (form(path), RemoteUrl::of_path(path)) {
                    (Some(Form::Sha256), _) => Err(FetchError::Sha256 { location }),
                    (Some(Form::PartialClone), _) => Err(FetchError::PartialClone { location }),
                    (Some(Form::Reftable), Some(url)) => Ok(Opened::Reftable(url)),
                    (Some(Form::Reftable) | None, _) => {
                        Err(FetchError::NotARepository { location, source })
                    }
                },
            },
        }
    }

    /// True if the repository may lack objects that its remote has.
    fn is_partial(&self) -> bool {
        let Ok(config) = self.repository.config() else {
            return false;
        };
        let mut is_partial = false;
        if let Ok(entries) = config.entries(Some("remote\\..*\\.promisor")) {
            let counted = entries.for_each(|entry| {
                is_partial |= entry.value().is_ok_and(|value| value == "true");
            });
            is_partial &= counted.is_ok();
        }
        is_partial
    }

    pub(super) fn resolve(&self, wanted: &Kind) -> Result<CommitId, FetchError> {
        if let Kind::Commit(commit) = wanted {
            return match self.repository.find_commit(commit.oid()) {
                Ok(_) => Ok(*commit),
                Err(error) if error.code() == ErrorCode::NotFound => Err(self.not_found(wanted)),
                Err(source) => Err(self.damaged(source)),
            };
        }
        for name in wanted.candidates() {
            let reference = self
                .repository
                .find_reference(&name)
                .and_then(|reference| reference.resolve());
            match reference {
                Ok(reference) => {
                    return match reference.peel(ObjectType::Commit) {
                        Ok(commit) => Ok(commit.id().into()),
                        Err(error) if error.code() == ErrorCode::NotFound => {
                            Err(self.damaged(error))
                        }
                        Err(_) => Err(FetchError::NotACommit {
                            location: self.location.clone(),
                            reference: wanted.to_string(),
                        }),
                    };
                }
                Err(error) if error.code() == ErrorCode::NotFound => {}
                Err(source) => return Err(self.damaged(source)),
            }
        }
        Err(self.not_found(wanted))
    }

    /// Copies a commit and its history into the mirror.
    pub(super) fn copy_into(
        &self,
        mirror: &Repository,
        commit: CommitId,
        fetch_limits: &FetchLimits,
    ) -> Result<(), FetchError> {
        let location = self.location.clone();
        copy::copy(&self.repository, mirror, commit.oid(), fetch_limits).map_err(
            |error| match error {
                CopyError::Source(source)
                    if source.code() == ErrorCode::NotFound && self.is_partial() =>
                {
                    FetchError::PartialClone { location }
                }
                CopyError::Source(source) => FetchError::SourceDamaged { location, source },
                CopyError::Mirror(source) => FetchError::Mirror {
                    dir: mirror.path().to_owned(),
                    source,
                },
                CopyError::TooLarge => FetchError::TooLarge {
                    location,
                    limit: fetch_limits.bytes,
                },
                CopyError::TimedOut => FetchError::TimedOut {
                    location,
                    limit: fetch_limits.transfer,
                },
            },
        )
    }

    fn not_found(&self, wanted: &Kind) -> FetchError {
        let location = self.location.clone();
        match self.references() {
            Err(source) => FetchError::SourceDamaged { location, source },
            Ok(references) if references.is_empty() => FetchError::Empty { location },
            Ok(references) => FetchError::ReferenceNotFound {
                location,
                reference: self.name_of(wanted),
                near: near(&wanted.to_string(), &references),
            },
        }
    }

    /// The full name of the branch to which HEAD points.
    pub(super) fn head_branch(&self) -> Option<String> {
        let head = self.repository.find_reference("HEAD").ok()?;
        Some(head.symbolic_target().ok()??.to_owned())
    }

    /// The name for messages. For HEAD, the branch to which it points.
    fn name_of(&self, wanted: &Kind) -> String {
        match wanted {
            Kind::Head => self.head_branch().unwrap_or_else(|| wanted.to_string()),
            Kind::Name(_) | Kind::Full(_) | Kind::Commit(_) => wanted.to_string(),
        }
    }

    fn references(&self) -> Result<Vec<String>, git2::Error> {
        let mut names = Vec::new();
        for reference in self.repository.references()? {
            if let Ok(name) = reference?.name() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn damaged(&self, source: git2::Error) -> FetchError {
        FetchError::SourceDamaged {
            location: self.location.clone(),
            source,
        }
    }
}

/// A format of repository that libgit2 does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Sha256,
    Reftable,
    PartialClone,
}

/// The format of a repository according to its configuration, if libgit2 does not support it.
fn form(path: &Path) -> Option<Form> {
    let config = Config::open(&common_folder(path).join("config")).ok()?;
    let extension = |key: &str| config.get_string(&format!("extensions.{key}")).ok();
    if extension("objectformat").is_some_and(|format| format != "sha1") {
        Some(Form::Sha256)
    } else if extension("partialclone").is_some() {
        Some(Form::PartialClone)
    } else if extension("refstorage").is_some_and(|storage| storage.starts_with("reftable")) {
        Some(Form::Reftable)
    } else {
        None
    }
}

/// Git's own folder of the repository at `path`, which all its work trees share. Found without libgit2.
pub(super) fn common_folder(path: &Path) -> PathBuf {
    let folder = path.join(".git");
    let Ok(link) = fs::read_to_string(&folder) else {
        return if folder.is_dir() {
            folder
        } else {
            path.to_owned()
        };
    };
    let folder = path.join(link.trim_end().trim_start_matches("gitdir: "));
    match fs::read_to_string(folder.join("commondir")) {
        Ok(common) => folder.join(common.trim_end()),
        Err(_) => folder,
    }
}

/// The branches most similar to the wanted name: first the branches that contain it or are contained in it, then by the
/// length of the common prefix.
pub(super) fn near(wanted: &str, references: &[String]) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let mut branches: Vec<&str> = references
        .iter()
        .filter_map(|name| name.strip_prefix("refs/heads/"))
        .collect();
    branches.sort_by_cached_key(|branch| {
        let lower = branch.to_lowercase();
        let contains = lower.contains(&wanted) || wanted.contains(&lower);
        let alike = lower
            .chars()
            .zip(wanted.chars())
            .take_while(|(a, b)| a == b)
            .count();
        (!contains, std::cmp::Reverse(alike), lower)
    });
    branches.truncate(limits::NEAR_NAMES);
    branches.into_iter().map(str::to_owned).collect()
}

fn refused_folder(location: Location, error: io::Error) -> FetchError {
    match error.kind() {
        io::ErrorKind::NotFound => FetchError::RepositoryMissing { location },
        io::ErrorKind::NotADirectory => FetchError::NotARepository {
            location,
            source: git2::Error::from_str("it is a file"),
        },
        _ => FetchError::Unreadable {
            location,
            source: error,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_folder_are_distinguished() {
        let at = || Location::Local("/srv/flows".into());
        assert!(matches!(
            refused_folder(at(), io::ErrorKind::NotFound.into()),
            FetchError::RepositoryMissing { .. }
        ));
        assert!(matches!(
            refused_folder(at(), io::ErrorKind::PermissionDenied.into()),
            FetchError::Unreadable { .. }
        ));
        assert!(matches!(
            refused_folder(at(), io::ErrorKind::NotADirectory.into()),
            FetchError::NotARepository { .. }
        ));
    }

    #[test]
    fn similar_branches_come_first() {
        let branches = ["zeta", "develop", "Main", "main-2", "mainline", "my", "b"];
        let mut references = branches.map(|name| format!("refs/heads/{name}")).to_vec();
        references.push("refs/tags/main".to_owned());
        assert_eq!(
            near("main", &references),
            ["Main", "main-2", "mainline", "my", "b"]
        );
    }
}
