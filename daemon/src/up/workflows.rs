//! The source of the workflows: the folder's own commits, or its saved files.
//!
//! Only commits change workflows. In a folder that is not a Git repository, people expect that saving a file is enough. So `up`
//! commits saved workflows and `everscan.yaml` to its own repository, which the daemon follows like any other repository.

#![expect(
    clippy::disallowed_methods,
    reason = "`up` commits what is saved, with the `git` program"
)]

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

use workflow::SETTINGS_FILE;

use super::error::UpError;
use super::home::Home;
use crate::limits::FOLDER_DEPTH;

const FOLDER: &str = "workflows";

pub(super) enum Workflows {
    /// The folder is a Git repository: its commits count.
    Committed { repository: PathBuf },
    /// The folder is not a Git repository: saved files count.
    Saved(Saved),
}

/// A folder whose saved workflows are committed.
pub(super) struct Saved {
    root: PathBuf,
    repository: PathBuf,
    committed: Vec<Print>,
    before: Vec<Print>,
}

/// The data that shows whether a file has changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Print {
    path: PathBuf,
    length: u64,
    modified: Option<SystemTime>,
}

impl Print {
    fn of(path: PathBuf, metadata: &Metadata) -> Option<Self> {
        metadata.is_file().then(|| Self {
            path,
            length: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }
}

impl Workflows {
    pub(super) fn first_step(&self, home: &Home) -> String {
        let folder = home.root().join(FOLDER);
        let folder = folder.display();
        match self {
            Self::Committed { .. } => format!("commit a workflow in {folder} and it runs"),
            Self::Saved(_) => format!("save your first workflow in {folder}"),
        }
    }

    pub(super) fn of(home: &Home) -> Result<Self, UpError> {
        let root = home.root();
        let is_bare = || root.join("HEAD").is_file() && root.join("objects").is_dir();
        if root.join(".git").exists() || is_bare() {
            // The source reports any other problem. It may work without the program.
            let format = git(root, &["rev-parse", "--show-object-format"]);
            if format.is_ok_and(|format| format.trim() == "sha256") {
                let path = root.to_owned();
                return Err(UpError::Sha256 { path });
            }
            return Ok(Self::Committed {
                repository: root.to_owned(),
            });
        }
        Saved::open(home).map(Self::Saved)
    }

    pub(super) fn repository(&self) -> &Path {
        match self {
            Self::Committed { repository } => repository,
            Self::Saved(saved) => &saved.repository,
        }
    }
}

impl Saved {
    fn open(home: &Home) -> Result<Self, UpError> {
        let mut saved = Self {
            root: home.root().to_owned(),
            repository: home.own().join("repository.git"),
            committed: Vec::new(),
            before: Vec::new(),
        };
        if !saved.repository.exists() {
            let path = saved.repository.display().to_string();
            git(
                home.root(),
                &["init", "--quiet", "--bare", "--initial-branch=main", &path],
            )?;
            // The first commit may be empty, because a repository without commits has no tip to follow.
            saved.commit_with(&["--allow-empty"])?;
        }
        let found = saved.files();
        saved.commit(found)?;
        Ok(saved)
    }

    /// Commits saved files and returns whether there were any. A file that is still changing waits for the next poll.
    pub(super) fn commit_saved(&mut self) -> Result<bool, UpError> {
        let found = self.files();
        let is_settled = std::mem::replace(&mut self.before, found.clone()) == found;
        if !is_settled || found == self.committed {
            return Ok(false);
        }
        self.commit(found)
    }

    /// A failed commit is repeated only after a change.
    fn commit(&mut self, found: Vec<Print>) -> Result<bool, UpError> {
        self.committed.clone_from(&found);
        self.before = found;
        // Git refuses a missing folder, and the user may have removed the folder with its last file.
        let folder = self.root.join(FOLDER);
        std::fs::create_dir_all(&folder).map_err(UpError::folder(&folder))?;
        self.git(&["add", "--all", "--force", "--", FOLDER])?;
        // `add` refuses a file that is neither here nor committed.
        let with_settings: &[&str] = match self.root.join(SETTINGS_FILE).is_file() {
            true => &["add", "--force", "--", SETTINGS_FILE],
            false => &[
                "rm",
                "-r",
                "--cached",
                "--quiet",
                "--ignore-unmatch",
                "--",
                SETTINGS_FILE,
            ],
        };
        self.git(with_settings)?;
        let is_new = !self
            .git(&["status", "--porcelain", "--untracked-files=no"])?
            .is_empty();
        if is_new {
            self.commit_with(&[])?;
        }
        Ok(is_new)
    }

    fn commit_with(&self, more: &[&str]) -> Result<(), UpError> {
        let message = ["commit", "--quiet", "--message", "Saved"];
        self.git(&[&message, more].concat()).map(drop)
    }

    fn files(&self) -> Vec<Print> {
        let mut prints = Vec::new();
        collect(&self.root.join(FOLDER), FOLDER_DEPTH, &mut prints);
        let settings = self.root.join(SETTINGS_FILE);
        let found = std::fs::metadata(&settings).ok();
        prints.extend(found.and_then(|metadata| Print::of(settings, &metadata)));
        prints.sort();
        prints
    }

    /// Runs `git` on the bare repository, with the folder as its work tree.
    fn git(&self, arguments: &[&str]) -> Result<String, UpError> {
        let place = [
            format!("--git-dir={}", self.repository.display()),
            format!("--work-tree={}", self.root.display()),
        ];
        let place = place.iter().map(String::as_str);
        let all: Vec<&str> = place.chain(arguments.iter().copied()).collect();
        git(&self.root, &all)
    }
}

/// Collects every file below `folder`. An unreadable file counts as missing; the next poll tries again.
fn collect(folder: &Path, depth: usize, prints: &mut Vec<Print>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_dir() && depth > 0 {
            collect(&entry.path(), depth - 1, prints);
        } else {
            prints.extend(Print::of(entry.path(), &metadata));
        }
    }
}

/// Runs `git` without the user's settings: these commits need no signature, hook or editor.
fn git(folder: &Path, arguments: &[&str]) -> Result<String, UpError> {
    let mut command = Command::new("git");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    for who in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        command.env(format!("{who}_NAME"), "everscand up");
        command.env(format!("{who}_EMAIL"), "up@localhost");
    }
    command
        .args(arguments)
        .current_dir(folder)
        // The daemon reads this format without the program, whatever Git's defaults are.
        .env("GIT_DEFAULT_HASH", "sha1")
        .env("GIT_DEFAULT_REF_FORMAT", "files")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::null());
    let command_line = format!("git {}", arguments.join(" "));
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().map_err(UpError::NoGit)?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&stderr).trim().to_owned();
    Err(UpError::Git {
        command: command_line,
        stderr,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn saved(root: &Path) -> Saved {
        match Workflows::of(&Home::open(root).unwrap()).unwrap() {
            Workflows::Saved(saved) => saved,
            Workflows::Committed { repository } => panic!("{}", repository.display()),
        }
    }

    fn files(saved: &Saved) -> Vec<String> {
        let listed = saved.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
        listed.unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn saved_files_are_committed_when_they_no_longer_change() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("notes.txt"), "mine").unwrap();
        let mut folder = saved(root.path());
        assert!(files(&folder).is_empty());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        let usual = root.path().join("usual");
        std::fs::create_dir(&usual).unwrap();
        let made = root.path().join("workflows");
        assert_eq!(mode(&made), mode(&usual), "the folder has the usual mode");
        assert!(!folder.commit_saved().unwrap());

        let file = root.path().join("workflows/a.yaml");
        std::fs::write(&file, "a").unwrap();
        assert!(!folder.commit_saved().unwrap(), "the file may still change");
        assert!(folder.commit_saved().unwrap());
        assert_eq!(files(&folder), ["workflows/a.yaml"]);
        assert!(!folder.commit_saved().unwrap());

        std::fs::remove_file(&file).unwrap();
        std::fs::write(root.path().join("workflows/b.yaml"), "b").unwrap();
        drop(folder);
        assert_eq!(
            files(&saved(root.path())),
            ["workflows/b.yaml"],
            "the next start commits the changes"
        );
    }

    #[test]
    fn rules_of_notifications_are_committed_as_workflows_are() {
        let root = tempfile::tempdir().unwrap();
        let mut folder = saved(root.path());
        let file = root.path().join("everscan.yaml");
        std::fs::write(&file, "notify: []").unwrap();
        assert!(!folder.commit_saved().unwrap(), "the file may still change");
        assert!(folder.commit_saved().unwrap());
        assert_eq!(files(&folder), ["everscan.yaml"]);
        std::fs::remove_file(&file).unwrap();
        assert!(!folder.commit_saved().unwrap());
        assert!(folder.commit_saved().unwrap());
        assert!(files(&folder).is_empty());
    }

    #[test]
    fn a_repository_with_sha_256_is_refused_by_name() {
        let root = tempfile::tempdir().unwrap();
        git(root.path(), &["init", "--quiet", "--object-format=sha256"]).unwrap();
        let refused = Workflows::of(&Home::open(root.path()).unwrap());
        let error = refused.err().unwrap().to_string();
        assert!(error.contains("SHA-256"), "{error}");
    }

    #[test]
    fn a_git_repository_is_used_and_not_changed() {
        let root = tempfile::tempdir().unwrap();
        git(root.path(), &["init", "--quiet"]).unwrap();
        let home = Home::open(root.path()).unwrap();
        let workflows = Workflows::of(&home).unwrap();
        assert_eq!(workflows.repository(), home.root());
        assert!(matches!(workflows, Workflows::Committed { .. }));
        let status = git(home.root(), &["status", "--porcelain"]);
        assert_eq!(status.unwrap(), "", "`up` must not change the repository");
    }
}
