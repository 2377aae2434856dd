//! Where everything lies. `state-layout.md` says the same for people, and a test compares the two.
//!
//! Names in paths are ids we make; the few words of users that appear (scan and artifact names, source names) are
//! percent-encoded and cut, so that no word of a user can leave its folder.

use std::path::{Path, PathBuf};

use chrono::{Datelike, Timelike};
use model::retention::Expiry;
use model::{
    JobId, ProjectId, RegistrationId, RevisionRef, RunnerId, ScanKey, SourceName, Timestamp,
    TokenId, WorkflowId,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use store::{Key, KeyError, Prefix};
use workflow::sha256;

use crate::limits::{NAME_BYTES, TIPS_PER_FOLDER};

/// What stands unencoded in a path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// Makes the keys of every file in the state folder.
pub(crate) struct Layout;

impl Layout {
    /// The folder of what runs out, by day, hour and shard.
    pub(crate) const EXPIRIES: &str = "expiries";

    /// The first admin token, until it is regenerated.
    pub(crate) fn initial_admin_token() -> Key {
        key("initial-admin-token".to_owned())
    }

    /// A source's record.
    pub(crate) fn source(source: &SourceName) -> Key {
        key(format!("sources/{source}/source.json"))
    }

    /// The record of a tip.
    pub(crate) fn tip(source: &SourceName, number: u64, commit: &str) -> Key {
        let folder = number / TIPS_PER_FOLDER;
        key(format!(
            "sources/{source}/tips/{folder:04}/{number:07}-{}.json",
            short(commit)
        ))
    }

    /// A project's vars.
    pub(crate) fn vars(project: ProjectId) -> Key {
        key(format!("projects/{project}/vars.json"))
    }

    /// A project's secrets, sealed.
    pub(crate) fn secrets(project: ProjectId) -> Key {
        key(format!("projects/{project}/secrets.json"))
    }

    /// A workflow's record.
    pub(crate) fn workflow(workflow: WorkflowId) -> Key {
        key(format!("workflows/{workflow}/workflow.json"))
    }

    /// A revision's record.
    pub(crate) fn revision(workflow: WorkflowId, revision: &RevisionRef) -> Key {
        key(format!(
            "{}/revision.json",
            revision_folder(workflow, revision)
        ))
    }

    /// A revision's text.
    pub(crate) fn revision_text(workflow: WorkflowId, revision: &RevisionRef) -> Key {
        key(format!(
            "{}/workflow.yaml",
            revision_folder(workflow, revision)
        ))
    }

    /// A scan's head.
    pub(crate) fn head(scan: &ScanKey) -> Key {
        key(format!("{}/head.json", scan_folder(scan)))
    }

    /// The digests of a scan's newest successes.
    pub(crate) fn digests(scan: &ScanKey) -> Key {
        key(format!("{}/digests.json", scan_folder(scan)))
    }

    /// The run of equal looks at a scan's triggers.
    pub(crate) fn repeats(scan: &ScanKey) -> Key {
        key(format!("{}/repeats.json", scan_folder(scan)))
    }

    /// A page of a scan's history.
    pub(crate) fn history(scan: &ScanKey, page: u64) -> Key {
        key(format!("{}/history/{page}.jsonl", scan_folder(scan)))
    }

    /// What is remembered of the jobs removed from a scan.
    pub(crate) fn retention(scan: &ScanKey) -> Key {
        key(format!("{}/retention.json", scan_folder(scan)))
    }

    /// A page of a scan's ledger.
    pub(crate) fn ledger(scan: &ScanKey, page: u64) -> Key {
        key(format!("{}/ledger/{page}.jsonl", scan_folder(scan)))
    }

    /// A job's record.
    pub(crate) fn job(job: JobId) -> Key {
        key(format!("{}/job.json", job_folder(job)))
    }

    /// A job's inputs, when they are too large for its record. No record itself, so not named like one.
    pub(crate) fn inputs(job: JobId) -> Key {
        key(format!("{}/inputs.object", job_folder(job)))
    }

    /// A job's log.
    pub(crate) fn log(job: JobId) -> Key {
        key(format!("{}/log.jsonl", job_folder(job)))
    }

    /// A job's artifact. A name that ends in `.zip` gets a second one: `a` and `a.zip` are two artifacts.
    pub(crate) fn artifact(job: JobId, name: &str) -> Key {
        key(format!(
            "{}/artifacts/{}.zip",
            job_folder(job),
            encoded(name)
        ))
    }

    /// That artifacts of a job run out in a certain hour.
    pub(crate) fn expiry(expiry: &Expiry) -> Key {
        let id = expiry.job.to_string();
        key(format!(
            "{}/{}/{}/{id}.json",
            Self::EXPIRIES,
            hour(expiry.at),
            shard(&id)
        ))
    }

    /// A runner's record.
    pub(crate) fn runner(runner: RunnerId) -> Key {
        key(format!("runners/{runner}.json"))
    }

    /// A waiting registration.
    pub(crate) fn registration(registration: RegistrationId) -> Key {
        key(format!("registrations/{registration}.json"))
    }

    /// A request that is remembered, by the digest that is its key.
    pub(crate) fn idempotency(key_digest: &str) -> Key {
        let shard: String = key_digest.chars().take(2).collect();
        key(format!(
            "idempotency/{}/{}.json",
            encoded(&shard),
            encoded(key_digest)
        ))
    }

    /// A token's record.
    pub(crate) fn token(token: TokenId) -> Key {
        key(format!("tokens/{token}.json"))
    }
}

/// Makes the folders that a start, or a look for what has expired, lists.
pub(crate) struct Folders;

impl Folders {
    pub(super) fn tokens() -> Prefix {
        folder("tokens")
    }

    /// A scan's retention record, as a place in the quarantine.
    pub(super) fn retention(scan: &ScanKey) -> Prefix {
        folder(Layout::retention(scan).as_str())
    }

    /// The folders of all workflows.
    pub(super) fn workflows() -> Prefix {
        folder("workflows")
    }

    /// The folders of a workflow's revisions.
    pub(super) fn revisions(workflow: WorkflowId) -> Prefix {
        folder(&format!("workflows/{workflow}/revisions"))
    }

    /// What expires, by day, then by hour, then by shard; `below` is empty or names these, each after a slash.
    pub(super) fn expiries(below: &str) -> Prefix {
        folder(&format!("{}{below}", Layout::EXPIRIES))
    }
}

/// The folder of the mirrors in the state folder `root`.
pub fn mirrors_folder(root: &Path) -> PathBuf {
    root.join("sources")
}

/// The folder of a source's bare mirror. Git's own files are in it, none of ours.
pub fn mirror_folder(mirrors: &Path, source: &SourceName) -> PathBuf {
    mirrors.join(source.to_string()).join("mirror.git")
}

/// Day, hour and the last two hexadecimal digits all follow from the id.
fn job_folder(job: JobId) -> String {
    let id = job.to_string();
    format!("jobs/{}/{}/{id}", hour(job.moment()), shard(&id))
}

/// The folders of an hour.
fn hour(moment: Timestamp) -> String {
    let (year, month, day) = (moment.year(), moment.month(), moment.day());
    format!("{year:04}-{month:02}-{day:02}/{:02}", moment.hour())
}

/// One of 256 folders, so that none of an hour grows too large: the last digits of an id are random.
fn shard(id: &str) -> &str {
    &id[id.len() - 2..]
}

fn revision_folder(workflow: WorkflowId, revision: &RevisionRef) -> String {
    format!(
        "workflows/{workflow}/revisions/{}-{}",
        revision.number,
        short(&revision.commit)
    )
}

fn scan_folder(scan: &ScanKey) -> String {
    format!(
        "workflows/{}/scans/{}",
        scan.workflow,
        encoded(scan.scan.as_str())
    )
}

fn short(commit: &str) -> String {
    encoded(&commit.chars().take(12).collect::<String>())
}

/// A user's word as a path segment: percent-encoded, and over 120 bytes a prefix plus a hash.
fn encoded(name: &str) -> String {
    let plain = utf8_percent_encode(name, PLAIN).to_string();
    let is_a_name = !plain.is_empty() && !plain.starts_with('.');
    if is_a_name && plain.len() <= NAME_BYTES {
        return plain;
    }
    let mut hash = sha256(name.as_bytes());
    hash.truncate(32);
    let prefix: String = plain
        .trim_start_matches('.')
        .chars()
        .take(NAME_BYTES - hash.len() - 1)
        .collect();
    format!("{prefix}~{hash}")
}

/// Every path above is built from ids and encoded words, so it is a key by construction.
fn key(path: String) -> Key {
    match Key::new(&path) {
        Ok(key) => key,
        Err(error) => broken(&path, &error),
    }
}

/// The same for a folder.
fn folder(path: &str) -> Prefix {
    match Prefix::folder(path) {
        Ok(folder) => folder,
        Err(error) => broken(path, &error),
    }
}

#[expect(
    clippy::panic,
    reason = "a path of ours that is no key is a defect of this file, not of any input"
)]
fn broken(path: &str, error: &KeyError) -> ! {
    panic!("layout made the path {path}, which is no key: {error}")
}

#[cfg(test)]
mod tests;
