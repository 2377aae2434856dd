//! The repository of the simulation: workflow files in several versions, and facts about them for the oracle, which
//! must not use the tested code.

use std::sync::{Arc, LazyLock};

use model::plan::{DesiredContent, DesiredFile, DesiredTip, TipFolder};
use model::{ScanKey, SourceName, WorkflowId, WorkflowStatus, World};
use workflow::{TemplatePolicy, Workflow, sha256};

use super::choices::Choices;
use crate::tests::fixture::scan_name;

/// The number of retries of all scans that have retries.
pub(super) const ATTEMPTS: u32 = 2;

/// A scan with a schedule, and scans that follow it. One expression is too expensive for a decision. The versions
/// change the schedule, and remove and restore a scan.
const FOLLOWED: [&str; 3] = [
    "
scans:
  produce:
    on: {cron: '* * * * *', dispatch: {}}
    retry: {attempts: 2, backoff: 20s}
    timeout: 5m
    expect: {success_every: 3m, starts_within: 20s}
    steps: [{run: x}]
    artifacts: [{name: out, paths: [out]}]
  available: {on: {expr: scans.produce.is_available()}, retry: {attempts: 2, backoff: 1s}, steps: [{run: x}]}
  differs: {on: {expr: scans.produce.has_diff('out')}, overlap: replace, steps: [{run: x}]}
  always:
    on: {dispatch: {}, expr: \"scans.produce.exists(a, scans.produce.exists(b, a.id == b.id && a.state == 'succeeded'))\"}
    overlap: queue
    steps: [{run: x}]
  reader: {on: {dispatch: {}, expr: \"scans.produce.has_news('out')\"}, overlap: queue, steps: [{run: x}]}
",
    "
scans:
  produce:
    on: {cron: '*/2 * * * *', catch_up: all, dispatch: {}}
    overlap: queue
    retry: {attempts: 2, backoff: 20s}
    steps: [{run: x}]
    artifacts: [{name: out, paths: [out]}]
  available: {on: {expr: scans.produce.is_available()}, retry: {attempts: 2, backoff: 1s}, steps: [{run: x}]}
",
    "
scans:
  produce:
    on: {cron: '* * * * *', catch_up: none, dispatch: {}}
    overlap: replace
    steps: [{run: x}]
    artifacts: [{name: out, paths: [out]}]
  differs: {on: {expr: scans.produce.has_diff('out')}, overlap: replace, steps: [{run: x}]}
  always:
    on: {dispatch: {}, expr: \"scans.produce.filter(j, j.state == 'succeeded').size() > 0\"}
    runs_on: [big]
    steps: [{run: x}]
  reader: {on: {expr: \"scans.produce.has_news('out')\"}, retry: {attempts: 2, backoff: 1s}, steps: [{run: y}]}
",
];

/// A group of two scans in all versions, and a scan whose expression names the scan itself.
const CYCLE: [&str; 3] = [
    "
scans:
  left: {on: {dispatch: {}, expr: scans.right.is_available()}, retry: {attempts: 2, backoff: 5s}, steps: [{run: x}]}
  right: {on: {expr: scans.left.is_available()}, steps: [{run: x}]}
  itself: {on: {dispatch: {}, expr: scans.itself.size() > 0 || scans.left.size() > 1000}, steps: [{run: x}]}
",
    "
scans:
  left: {on: {dispatch: {}, expr: scans.right.is_available()}, overlap: queue, steps: [{run: x}]}
  right: {on: {expr: scans.left.is_available()}, overlap: replace, steps: [{run: x}]}
",
    "
scans:
  left: {on: {dispatch: {}, expr: \"scans.right.exists(j, j.state == 'succeeded')\"}, steps: [{run: x}]}
  right: {on: {dispatch: {}, expr: size(scans.left) >= 0}, retry: {attempts: 2, backoff: 5s}, steps: [{run: x}]}
",
];

/// The scans of the file `cycle` that can wake each other.
const GROUP: [&str; 2] = ["left", "right"];

/// Schedules with different rules for missed slots.
const CRON: [&str; 2] = [
    "
scans:
  all: {on: {cron: '* * * * *', catch_up: all}, overlap: queue, retry: {attempts: 2, backoff: 10s}, steps: [{run: x}]}
  none: {on: {cron: '*/3 * * * *', catch_up: none}, overlap: skip, runs_on: [big], steps: [{run: x}]}
",
    "
scans:
  all: {on: {cron: '* * * * *', catch_up: latest}, overlap: replace, steps: [{run: x}]}
  none: {on: {cron: ['*/3 * * * *', '*/2 * * * *'], timezone: Europe/Berlin}, overlap: skip, runs_on: [big], steps: [{run: x}]}
",
];

/// Scans that a callback server starts. Their own jobs plant names, too.
const HEARD: [&str; 3] = [
    "
scans:
  report: {on: {callback: {server: shop}, dispatch: {}}, retry: {attempts: 2, backoff: 5s}, steps: [{run: x}]}
  digest: {on: {callback: {server: shop, min_interval: 2m}}, overlap: queue, steps: [{run: x}]}
",
    "
scans:
  report: {on: {callback: {server: shop, min_interval: 90s}}, overlap: replace, steps: [{run: x}]}
  digest: {on: {callback: {server: shop}, dispatch: {}}, steps: [{run: x}]}
",
    "
scans:
  report: {on: {callback: {server: shop}}, runs_on: [big], steps: [{run: x}]}
",
];

/// File, scan, and the scan that its success wakes, in every version that has both scans.
const WAKES: [(&str, &str, &str); 7] = [
    ("followed", "produce", "available"),
    ("followed", "produce", "differs"),
    ("followed", "produce", "always"),
    ("followed", "produce", "reader"),
    ("cycle", "left", "right"),
    ("cycle", "right", "left"),
    ("cycle", "left", "itself"),
];

/// A version of a file.
pub(super) struct Version {
    pub(super) text: Arc<str>,
    pub(super) sha256: String,
    pub(super) definition: Arc<Workflow>,
}

/// A workflow file with all its versions.
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) id: WorkflowId,
    pub(super) versions: Vec<Version>,
}

impl File {
    fn new(name: &'static str, texts: &[&str]) -> Self {
        let version = |text: &&str| {
            let parsed = workflow::parse(name, text, TemplatePolicy::Warn).unwrap();
            Version {
                text: (*text).into(),
                sha256: sha256(text.as_bytes()),
                definition: Arc::new(parsed.workflow),
            }
        };
        Self {
            name,
            id: WorkflowId::derive(&source(), name),
            versions: texts.iter().map(version).collect(),
        }
    }

    pub(super) fn key(&self, scan: &str) -> ScanKey {
        ScanKey {
            workflow: self.id,
            scan: scan_name(scan),
        }
    }

    /// The scans of all versions.
    pub(super) fn scans(&self) -> impl Iterator<Item = ScanKey> {
        let scans = self.versions.iter().flat_map(|it| it.definition.scans());
        scans.map(|scan| self.key(scan.name.as_str()))
    }
}

static FILES: LazyLock<[File; 4]> = LazyLock::new(|| {
    [
        File::new("followed", &FOLLOWED),
        File::new("cycle", &CYCLE),
        File::new("cron", &CRON),
        File::new("heard", &HEARD),
    ]
});

pub(super) fn files() -> &'static [File] {
    &*FILES
}

pub(super) fn source() -> SourceName {
    "recon".parse().unwrap()
}

/// The scans that a success of `scan` wakes.
pub(super) fn woken_by(scan: &ScanKey) -> impl Iterator<Item = ScanKey> {
    let file = files().iter().find(|file| file.id == scan.workflow);
    let wakes = WAKES
        .iter()
        .filter(|(_, waker, _)| *waker == scan.scan.as_str());
    file.into_iter()
        .flat_map(move |file| wakes.clone().filter(|(name, ..)| *name == file.name))
        .map(move |(name, _, woken)| {
            let file = files().iter().find(|file| file.name == *name);
            file.unwrap().key(woken)
        })
}

/// The scan that uses `has_news()`, and the scan whose news it reads.
pub(super) fn reader_and_read() -> (ScanKey, ScanKey) {
    let [followed, ..] = &*FILES;
    (followed.key("reader"), followed.key("produce"))
}

/// The number of scans in the group of a scan, if it is in a group.
pub(super) fn group_of(scan: &ScanKey) -> Option<u64> {
    let is_in_cycle = files()[1].id == scan.workflow;
    (is_in_cycle && GROUP.contains(&scan.scan.as_str())).then_some(GROUP.len() as u64)
}

/// The state of a file at the tip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtTip {
    Absent,
    Invalid,
    Version(usize),
}

/// The repository at its tip.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    pub(super) commit: u64,
    pub(super) files: Vec<AtTip>,
}

impl Repository {
    pub(super) fn new() -> Self {
        Self {
            commit: 1,
            files: vec![AtTip::Version(0); files().len()],
        }
    }

    /// A commit that changes one file.
    pub(super) fn push(&mut self, choices: &mut Choices) {
        self.commit += 1;
        let file = choices.below(files().len());
        let versions = files()[file].versions.len();
        self.files[file] = match choices.below(10) {
            0 => AtTip::Absent,
            1 => AtTip::Invalid,
            _ => AtTip::Version(choices.below(versions)),
        };
    }

    /// The tip as a daemon reads it.
    pub(super) fn tip(&self, world: &World) -> DesiredTip {
        let files = files().iter().zip(&self.files);
        let files = files.filter_map(|(file, at_tip)| {
            let content = match at_tip {
                AtTip::Absent => return None,
                AtTip::Invalid => DesiredContent::Invalid {
                    diagnostics: Vec::new(),
                    excerpt: None,
                },
                AtTip::Version(version) => {
                    let version = &file.versions[*version];
                    if is_active(world, file.id, &version.sha256) {
                        DesiredContent::Unchanged
                    } else {
                        DesiredContent::Valid {
                            text: version.text.clone(),
                            sha256: version.sha256.clone(),
                            definition: version.definition.clone(),
                            warnings: Vec::new(),
                        }
                    }
                }
            };
            Some(DesiredFile {
                file: format!("workflows/{}.yaml", file.name),
                name: file.name.to_owned(),
                content,
            })
        });
        DesiredTip {
            commit: format!("{:040}", self.commit),
            files: files.collect(),
            folder: TipFolder::Read,
        }
    }
}

/// Whether this text is the active revision.
fn is_active(world: &World, id: WorkflowId, text: &str) -> bool {
    world
        .workflow(id)
        .is_some_and(|workflow| match workflow.record.status {
            WorkflowStatus::Active => workflow.revision.record.text.sha256 == text,
            WorkflowStatus::Retired { .. } => false,
        })
}
