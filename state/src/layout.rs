//! The paths of all files. `state-layout.md` documents them, and a test compares the two.
//!
//! Most names in paths are ids that we make. The few names from users (sources, scans, artifacts, blobs) are
//! percent-encoded and shortened, so that no such name can leave its folder.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use chrono::{Datelike, NaiveDate, Timelike};
use model::retention::Expiry;
use model::{
    BlobLinkId, BlobPath, CallbackId, CallbackTag, ChannelId, ConditionId, JobId, OutgoingId,
    PayloadGroupId, PayloadName, ProjectId, RegistrationId, RevisionRef, RunnerId, ScanKey,
    SessionId, SourceName, Timestamp, TokenId, UserId, WorkflowId,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use store::{Key, KeyError, Prefix};
use workflow::{ScanName, sha256};

use crate::limits::{MINTS_PER_FOLDER, NAME_BYTES, TIPS_PER_FOLDER};

/// Characters that stay unencoded in a path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// Makes the keys of every file in the state folder.
pub(crate) struct Layout;

/// Makes a function and a [`RecordPlace`] for each key. Values of the pattern that are not arguments follow in braces.
macro_rules! keys {
    ($(
        $(#[$doc:meta])*
        $place:ident: $name:ident($($argument:ident: $type:ty),*) $pattern:literal
            $({ $($word:ident: $value:expr),* })?;
    )*) => {
        impl Layout {
            $(
                $(#[$doc])*
                pub(crate) fn $name($($argument: $type),*) -> Key {
                    key(format!($pattern $($(, $word = $value)*)?))
                }
            )*
        }

        /// The kind of file at a key: a variant for each function of [`Layout`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum RecordPlace {
            $($place,)*
        }

        impl RecordPlace {
            const ALL: &[Self] = &[$(Self::$place),*];

            const fn pattern(self) -> &'static str {
                match self {
                    $(Self::$place => $pattern,)*
                }
            }
        }
    };
}

impl RecordPlace {
    /// The place of a key. `None` for a key that [`Layout`] does not make.
    pub(crate) fn parse(key: &Key) -> Option<Self> {
        let fits = |place: &Self| words(place.pattern(), key.as_str()).is_some();
        Self::ALL.iter().copied().find(fits)
    }

    /// The value of a key at `{name}` of the pattern. `None` if [`Layout`] would write the value differently, as for a
    /// shortened name.
    pub(crate) fn word<T: FromStr + ToString>(self, key: &Key, name: &str) -> Option<T> {
        let words = words(self.pattern(), key.as_str())?;
        let (_, word) = words.into_iter().find(|(known, _)| *known == name)?;
        let value: T = word.parse().ok()?;
        let has_width = self.pattern().contains(&format!("{{{name}:"));
        (has_width || value.to_string() == word).then_some(value)
    }

    /// The path of the file in a folder of such files. Its name has no words.
    pub(crate) fn path_in(self, folder: &str) -> String {
        let name = self.pattern().rsplit('/').next().unwrap_or_default();
        format!("{folder}/{name}")
    }

    /// Whether files of some place are below this folder of the state folder.
    pub(crate) fn is_top_folder(name: &str) -> bool {
        let top = |place: &Self| place.pattern().split_once('/').map(|(top, _)| top);
        Self::ALL.iter().any(|place| top(place) == Some(name))
    }
}

/// The named values in a text that matches a pattern. Only a `{path}` may contain slashes.
fn words<'t>(pattern: &'static str, text: &'t str) -> Option<Vec<(&'static str, &'t str)>> {
    let Some((before, rest)) = pattern.split_once('{') else {
        return (pattern == text).then(Vec::new);
    };
    let text = text.strip_prefix(before)?;
    let (word, rest) = rest.split_once('}')?;
    let name = word.split(':').next().unwrap_or(word);
    let longest = match name {
        "path" => text.len(),
        _ => text.find('/').unwrap_or(text.len()),
    };
    (1..=longest).find_map(|end| {
        let (word, text) = text.split_at_checked(end)?;
        let mut words = words(rest, text)?;
        words.insert(0, (name, word));
        Some(words)
    })
}

keys! {
    InitialAdminToken: initial_admin_token() "initial-admin-token";
    Source: source(source: &SourceName) "sources/{source}/source.json";
    Tip: tip(source: &SourceName, number: u64, commit: &str)
        "sources/{source}/tips/{thousand:04}/{number:07}-{commit}.json"
        { thousand: number / TIPS_PER_FOLDER, commit: short(commit) };
    Vars: vars(project: ProjectId) "projects/{project}/vars.json";
    Secrets: secrets(project: ProjectId) "projects/{project}/secrets.json";
    /// The rules of notifications of a project, or of the instance.
    Rules: rules(project: Option<ProjectId>)
        "rules/{owner}.json"
        { owner: project.map_or_else(|| "instance".to_owned(), |project| project.to_string()) };
    /// Number and size of a project's blobs.
    BlobUsage: blob_usage(project: ProjectId) "projects/{project}/blobs.json";
    BlobLink: blob_link(link: BlobLinkId) "blob-links/{link}.json";
    /// The content of a blob, in the folders of its path.
    Blob: blob(project: ProjectId, path: &BlobPath)
        "blobs/{project}/{path}" { path: blob_place(path.names()) };
    /// The record of a blob, in folders of the same names.
    BlobRecord: blob_record(project: ProjectId, path: &BlobPath)
        "blob-records/{project}/{path}~.json" { path: blob_place(path.names()) };
    Condition: condition(condition: ConditionId) "conditions/{condition}.json";
    Workflow: workflow(workflow: WorkflowId) "workflows/{workflow}/workflow.json";
    WorkflowSuspension: workflow_suspension(workflow: WorkflowId) "workflows/{workflow}/suspension.json";
    ScanSuspension: scan_suspension(workflow: WorkflowId, scan: &ScanName)
        "workflows/{workflow}/scans/{scan}/suspension.json"
        { scan: encoded(scan.as_str()) };
    Revision: revision(workflow: WorkflowId, revision: &RevisionRef)
        "workflows/{workflow}/revisions/{number}-{commit}/revision.json"
        { number: revision.number, commit: short(&revision.commit) };
    RevisionText: revision_text(workflow: WorkflowId, revision: &RevisionRef)
        "workflows/{workflow}/revisions/{number}-{commit}/workflow.yaml"
        { number: revision.number, commit: short(&revision.commit) };
    Head: head(scan: &ScanKey)
        "workflows/{workflow}/scans/{scan}/head.json"
        { workflow: scan.workflow, scan: encoded(scan.scan.as_str()) };
    /// The digests of a scan's newest successes.
    Digests: digests(scan: &ScanKey)
        "workflows/{workflow}/scans/{scan}/digests.json"
        { workflow: scan.workflow, scan: encoded(scan.scan.as_str()) };
    /// The latest run of equal evaluations of a scan's triggers.
    Repeats: repeats(scan: &ScanKey)
        "workflows/{workflow}/scans/{scan}/repeats.json"
        { workflow: scan.workflow, scan: encoded(scan.scan.as_str()) };
    /// Totals of the jobs removed from a scan, and where its history begins.
    Retention: retention(scan: &ScanKey)
        "workflows/{workflow}/scans/{scan}/retention.json"
        { workflow: scan.workflow, scan: encoded(scan.scan.as_str()) };
    History: history(scan: &ScanKey, page: u64)
        "workflows/{workflow}/scans/{scan}/history/{page}.jsonl"
        { workflow: scan.workflow, scan: encoded(scan.scan.as_str()) };
    Ledger: ledger(scan: &ScanKey, page: u64)
        "workflows/{workflow}/scans/{scan}/ledger/{page}.jsonl"
        { workflow: scan.workflow, scan: encoded(scan.scan.as_str()) };
    Job: job(job: JobId)
        "jobs/{day}/{hour:02}/{shard}/{job}/job.json"
        { day: day(job.moment()), hour: job.moment().hour(), shard: shard(job) };
    /// A job's inputs, if they are too large for its record. The file is not a record, so its name does not end in
    /// `.json`.
    Inputs: inputs(job: JobId)
        "jobs/{day}/{hour:02}/{shard}/{job}/inputs.object"
        { day: day(job.moment()), hour: job.moment().hour(), shard: shard(job) };
    Log: log(job: JobId)
        "jobs/{day}/{hour:02}/{shard}/{job}/log.jsonl"
        { day: day(job.moment()), hour: job.moment().hour(), shard: shard(job) };
    /// A job's artifact. A name that ends in `.zip` gets a second `.zip`: `a` and `a.zip` are two artifacts.
    Artifact: artifact(job: JobId, name: &str)
        "jobs/{day}/{hour:02}/{shard}/{job}/artifacts/{name}.zip"
        { day: day(job.moment()), hour: job.moment().hour(), shard: shard(job), name: encoded(name) };
    /// Marks that artifacts of a job expire in this hour.
    Expiry: expiry(expiry: &Expiry)
        "expiries/{day}/{hour:02}/{shard}/{job}.json"
        { day: day(expiry.at), hour: expiry.at.hour(), shard: shard(expiry.job), job: expiry.job };
    Runner: runner(runner: RunnerId) "runners/{runner}.json";
    Registration: registration(registration: RegistrationId) "registrations/{registration}.json";
    /// A stored request, by the digest of its idempotency key.
    Idempotency: idempotency(digest: &str)
        "idempotency/{shard}/{digest}.json"
        { shard: encoded(&digest.chars().take(2).collect::<String>()), digest: encoded(digest) };
    Token: token(token: TokenId) "tokens/{token}.json";
    User: user(user: UserId) "users/{user}.json";
    Session: session(session: SessionId) "sessions/{session}.json";
    /// Jumps of the clock by which stored expiry times are off.
    Clock: clock() "clock.json";
    /// The audit log of a day.
    Audit: audit(day: NaiveDate) "audit/{day}.jsonl";
    Callback: callback(server: CallbackId) "callbacks/{server}/callback.json";
    CallbackToken: callback_token(server: CallbackId, tag: CallbackTag)
        "callbacks/{server}/tokens/{tag}.json";
    /// Tags that were made at once.
    Minted: minted(server: CallbackId, number: u32)
        "callbacks/{server}/minted/{thousand}/{number}.json"
        { thousand: number / MINTS_PER_FOLDER };
    /// The payload and the target of each line of a mint, if payloads were rendered.
    MintedLines: minted_lines(server: CallbackId, number: u32)
        "callbacks/{server}/minted/{thousand}/{number}.object"
        { thousand: number / MINTS_PER_FOLDER };
    /// The account at an authority of certificates, and the certificate of callback servers.
    CallbackCertificate: callback_certificate() "callbacks/certificate.json";
    /// A page of interactions.
    Interactions: interactions(server: &CallbackId, page: u64)
        "callbacks/{server}/interactions/{page}.jsonl";
    /// The raw requests of a page of interactions, one after the other.
    RawRequests: raw_requests(server: &CallbackId, page: u64) "callbacks/{server}/raw/{page}.bin";
    /// The tags of closed pages of interactions.
    InteractionIndex: interaction_index(server: &CallbackId, number: u64)
        "callbacks/{server}/index/{number}.jsonl";
    PayloadGroup: payload_group(group: PayloadGroupId) "payloads/{group}/group.json";
    /// The body of one version of a payload.
    Payload: payload(group: PayloadGroupId, name: &PayloadName, version: u64)
        "payloads/{group}/bodies/{name}/{version}.object";
    Channel: channel(channel: ChannelId) "channels/{channel}.json";
    /// Events that are not sent to every channel yet.
    Outgoing: outgoing(outgoing: OutgoingId)
        "outbox/{shard}/{outgoing}.json"
        { shard: shard(outgoing) };
    /// The events of a day.
    Events: events(day: NaiveDate) "events/{day}.jsonl";
    /// The attempts of a day to send messages.
    Deliveries: deliveries(day: NaiveDate) "deliveries/{day}.jsonl";
}

impl Layout {
    /// The latest suspension of a scan, or of the whole workflow.
    pub(crate) fn suspension(workflow: WorkflowId, scan: Option<&ScanName>) -> Key {
        match scan {
            None => Self::workflow_suspension(workflow),
            Some(scan) => Self::scan_suspension(workflow, scan),
        }
    }

    /// The record of the blob with this content. None for a path that no blob has.
    pub(crate) fn record_of_blob(content: &Key) -> Option<Key> {
        let place = RecordPlace::Blob;
        let project: ProjectId = place.word(content, "project")?;
        let path: String = place.word(content, "path")?;
        Key::new(format!("blob-records/{project}/{path}~.json")).ok()
    }
}

/// Makes the prefixes of folders that are listed.
pub(crate) struct Folders;

impl Folders {
    pub(super) fn tokens() -> Prefix {
        folder("tokens")
    }

    pub(super) fn users() -> Prefix {
        folder("users")
    }

    /// A scan's retention record, as a place in the quarantine.
    pub(super) fn retention(scan: &ScanKey) -> Prefix {
        folder(Layout::retention(scan).as_str())
    }

    pub(super) fn workflows() -> Prefix {
        folder("workflows")
    }

    pub(super) fn revisions(workflow: WorkflowId) -> Prefix {
        folder(&format!("workflows/{workflow}/revisions"))
    }

    pub(super) fn tips(source: &SourceName, thousand: u64) -> Prefix {
        folder(&format!("sources/{source}/tips/{thousand:04}"))
    }

    /// The records of the blobs in a folder of a project.
    pub(super) fn blob_records(project: ProjectId, names: &[String]) -> Prefix {
        match blob_place(names).as_str() {
            "" => folder(&format!("blob-records/{project}")),
            place => folder(&format!("blob-records/{project}/{place}")),
        }
    }

    /// A folder in a folder of blobs, by its name on disk.
    pub(super) fn in_blob_folder(above: &Prefix, name: &str) -> Prefix {
        folder(&format!("{}/{name}", above.as_str()))
    }

    /// The expiry records, or those below a day, an hour or a shard; `below` is empty or names these, each after a
    /// slash.
    pub(super) fn expiries(below: &str) -> Prefix {
        folder(&format!("expiries{below}"))
    }
}

/// The folder of the mirrors in the state folder `root`.
pub fn mirrors_folder(root: &Path) -> PathBuf {
    root.join("sources")
}

/// The folder of a source's bare mirror.
pub fn mirror_folder(mirrors: &Path, source: &SourceName) -> PathBuf {
    mirrors.join(source.to_string()).join("mirror.git")
}

/// Whether a path relative to the state folder is a mirror, including new and replaced mirrors.
pub(crate) fn is_mirror(below: &Path) -> bool {
    let segments: Vec<_> = below
        .iter()
        .filter_map(|segment| segment.to_str())
        .collect();
    matches!(
        segments[..],
        [
            "sources",
            _,
            "mirror.git" | "mirror.git.new" | "mirror.git.old"
        ]
    )
}

fn day(moment: Timestamp) -> String {
    let (year, month, day) = (moment.year(), moment.month(), moment.day());
    format!("{year:04}-{month:02}-{day:02}")
}

/// One of 256 folders, to keep folders small. The last digits of an id are random.
fn shard(id: impl fmt::Display) -> String {
    let id = id.to_string();
    id[id.len() - 2..].to_owned()
}

fn short(commit: &str) -> String {
    encoded(&commit.chars().take(12).collect::<String>())
}

/// A user's name as a path segment: percent-encoded. A name over 120 bytes becomes a prefix and a hash.
fn encoded(name: &str) -> String {
    let plain = utf8_percent_encode(name, PLAIN).to_string();
    let is_a_name = !plain.is_empty() && !plain.starts_with('.');
    if is_a_name && plain.len() <= NAME_BYTES {
        return plain;
    }
    cut(plain.trim_start_matches('.'), name)
}

/// The beginning of an encoded name, and a hash of the name.
fn cut(plain: &str, name: &str) -> String {
    let mut hash = sha256(name.as_bytes());
    hash.truncate(32);
    let prefix: String = plain.chars().take(NAME_BYTES - hash.len() - 1).collect();
    format!("{prefix}~{hash}")
}

/// The names of a blob and its folders, as a path.
fn blob_place(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| blob_name(name)).collect();
    names.join("/")
}

/// The name on disk of a blob or of a folder of blobs.
pub(crate) fn blob_name(name: &str) -> String {
    let plain = utf8_percent_encode(name, PLAIN).to_string();
    let plain = match plain.strip_prefix('.') {
        Some(rest) => format!("%2E{rest}"),
        None => plain,
    };
    if plain.len() <= NAME_BYTES {
        plain
    } else {
        cut(&plain, name)
    }
}

/// The name on disk of the blob with this record. None for another file and for a folder.
pub(crate) fn blob_of_record(record: &Key) -> Option<String> {
    let path: String = RecordPlace::BlobRecord.word(record, "path")?;
    path.rsplit('/').next().map(str::to_owned)
}

/// The names of the folders that lead to a folder of [`Folders::blob_records`]. `None` for a shortened name.
pub(crate) fn blob_folders_of(records: &Prefix) -> Vec<Option<String>> {
    let on_disk = records.as_str().split('/').skip(2);
    on_disk.map(blob_name_of).collect()
}

/// The name that [`blob_name`] encoded. `None` for a shortened name.
pub(crate) fn blob_name_of(on_disk: &str) -> Option<String> {
    if on_disk.contains('~') {
        return None;
    }
    let name = percent_decode_str(on_disk).decode_utf8().ok()?;
    Some(name.into_owned())
}

/// Every path above is built from ids and encoded names, so it is always a valid key.
fn key(path: String) -> Key {
    match Key::new(&path) {
        Ok(key) => key,
        Err(error) => broken(&path, &error),
    }
}

/// Like `key`, for a folder.
fn folder(path: &str) -> Prefix {
    match Prefix::folder(path) {
        Ok(folder) => folder,
        Err(error) => broken(path, &error),
    }
}

#[expect(
    clippy::panic,
    reason = "an invalid key is a defect of this file, not of any input"
)]
fn broken(path: &str, error: &KeyError) -> ! {
    panic!("layout made the path {path}, which is no key: {error}")
}

#[cfg(test)]
mod tests;
