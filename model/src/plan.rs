//! The plan for a tip: the changes that make the tip active.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use workflow::{Diagnostic, LinesOfFile, Workflow};

use crate::decide::{Activate, HoldCommit, Retire};
use crate::limits::{HELD_NAMES, STALE_DIAGNOSTICS};
use crate::revision::{HeldCommit, WorkflowRecord, WorkflowStatus};
use crate::source::{FileOutcome, FileVerdict, Removal, Source, StaleFile};
use crate::{Timestamp, WorkflowId, World};

/// A workflow file at a tip.
#[derive(Debug, Clone)]
pub struct DesiredFile {
    /// Path in the repository.
    pub file: String,
    pub name: String,
    pub content: DesiredContent,
}

#[derive(Debug, Clone)]
pub enum DesiredContent {
    /// The text of the newest revision, so it was not parsed.
    Unchanged,
    /// A valid text.
    Valid {
        text: Arc<str>,
        /// SHA-256 of the text, hexadecimal.
        sha256: String,
        definition: Arc<Workflow>,
        warnings: Vec<Diagnostic>,
    },
    /// Not a valid workflow.
    Invalid {
        diagnostics: Vec<Diagnostic>,
        /// The lines around the first error.
        excerpt: Option<LinesOfFile>,
    },
}

#[derive(Debug, Clone)]
pub struct DesiredTip {
    pub commit: String,
    /// Every workflow file, in order of path.
    pub files: Vec<DesiredFile>,
    /// The entry at the path of the source's folder.
    pub folder: TipFolder,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TipFolder {
    /// The folder, completely read.
    Read,
    /// No entry: the tip has no workflows.
    Missing,
    /// Another entry, described here. No workflow counts as deleted.
    Unreadable(String),
}

/// How the workflows of a tip are treated as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Standing {
    /// Each file is planned separately.
    #[default]
    Applied,
    /// There is no folder, so there are no workflows.
    NoFolder,
    /// Nothing is applied, because the path of the folder is not a folder.
    Unreadable(String),
    /// Nothing is applied until a person approves the tip.
    Held(HeldRemoval),
}

/// The workflows that a tip would retire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRemoval {
    /// The number of workflows.
    pub workflows: u64,
    /// The first workflows by name.
    pub names: Vec<String>,
    /// True if they would be retired because the source has another folder.
    pub folder_changed: bool,
}

#[derive(Debug, Clone, Default)]
pub struct TipPlan {
    pub activate: Vec<Activate>,
    /// Workflows whose files were removed.
    pub retire: Vec<Retire>,
    /// Workflows whose jobs get files of another commit from now on. Their revision does not change.
    pub hold: Vec<HoldCommit>,
    /// Invalid files, each with the time since it is invalid.
    pub stale: Vec<StaleFile>,
    /// The outcome for each file whose state changed.
    pub verdicts: Vec<FileVerdict>,
    pub standing: Standing,
}

/// Plans how to make a tip active. Each file is planned separately: an invalid file never affects a valid file, and an
/// unreadable file does not count as deleted. If the tip would retire all of several workflows, or any workflow because
/// the source has another folder, this is usually a mistake, so the tip needs an approval.
pub fn plan(source: &Source, desired: DesiredTip, world: &World, now: Timestamp) -> TipPlan {
    let mut plan = TipPlan::default();
    let mut seen: BTreeSet<WorkflowId> = BTreeSet::new();
    let mut held: BTreeMap<WorkflowId, String> = BTreeMap::new();
    let mut known: BTreeMap<&str, &StaleFile> = source
        .stale_files
        .iter()
        .map(|stale| (stale.file.as_str(), stale))
        .collect();

    for DesiredFile {
        file,
        name,
        content,
    } in desired.files
    {
        let id = WorkflowId::derive(&source.name, &name);
        seen.insert(id);
        match content {
            DesiredContent::Unchanged => {
                if is_held(world.workflow_record(id)) {
                    plan.hold.push(HoldCommit {
                        workflow: id,
                        held: HeldCommit::until_recorded(Some(source), &desired.commit),
                    });
                }
            }
            DesiredContent::Valid {
                text,
                sha256,
                definition,
                warnings,
            } => {
                plan.verdicts.push(FileVerdict {
                    file: file.clone(),
                    verdict: FileOutcome::Activated,
                });
                plan.activate.push(Activate {
                    source: source.name.clone(),
                    name,
                    file,
                    commit: desired.commit.clone(),
                    text,
                    sha256,
                    definition,
                    warnings,
                });
            }
            DesiredContent::Invalid {
                mut diagnostics,
                excerpt,
            } => {
                diagnostics.truncate(STALE_DIAGNOSTICS);
                let active = world.workflow_record(id).filter(|record| is_active(record));
                if let Some(record) = active
                    && !is_held(Some(record))
                {
                    held.insert(id, world.files_of(record).commit);
                }
                let before = known.remove(file.as_str());
                let since = before.map_or(now, |before| before.since);
                if before.is_none_or(|before| !diagnostics.starts_with(&before.diagnostics)) {
                    plan.verdicts.push(FileVerdict {
                        file: file.clone(),
                        verdict: FileOutcome::Invalid,
                    });
                }
                plan.stale.push(StaleFile {
                    file,
                    workflow: id,
                    commit: desired.commit.clone(),
                    since,
                    diagnostics,
                    excerpt,
                });
            }
        }
    }
    plan.hold
        .extend(held.into_iter().map(|(workflow, commit)| HoldCommit {
            workflow,
            held: HeldCommit {
                commit,
                until: None,
            },
        }));
    let mut leaving: Vec<&WorkflowRecord> = Vec::new();
    if !matches!(desired.folder, TipFolder::Unreadable(_)) {
        for record in world.workflow_records(&source.name) {
            match record.status {
                WorkflowStatus::Active if !seen.contains(&record.id) => {
                    plan.verdicts.push(FileVerdict {
                        file: record.file.clone(),
                        verdict: FileOutcome::Retired,
                    });
                    plan.retire.push(Retire {
                        workflow: record.id,
                    });
                    leaving.push(record);
                }
                WorkflowStatus::Active | WorkflowStatus::Retired { .. } => {}
            }
        }
    }
    plan.standing = match (held_removal(source, world, &leaving), desired.folder) {
        (Some(removal), _) if !is_approved(source, &desired.commit) => Standing::Held(removal),
        (_, TipFolder::Unreadable(what)) => Standing::Unreadable(what),
        (_, TipFolder::Missing) => Standing::NoFolder,
        (_, TipFolder::Read) => Standing::Applied,
    };
    match plan.standing {
        Standing::Applied | Standing::NoFolder => plan,
        Standing::Unreadable(_) | Standing::Held(_) => {
            plan.stale.extend(known.into_values().cloned());
            plan.verdicts
                .retain(|file| file.verdict == FileOutcome::Invalid);
            TipPlan {
                activate: Vec::new(),
                retire: Vec::new(),
                hold: Vec::new(),
                ..plan
            }
        }
    }
}

/// True if the removal in this commit was approved and the configuration has not changed since.
fn is_approved(source: &Source, commit: &str) -> bool {
    let tip = source.tip.as_ref().map(|tip| tip.commit.as_str());
    source.removal == Some(Removal::Approved) && tip == Some(commit)
}

/// The removal, if it needs an approval.
fn held_removal(
    source: &Source,
    world: &World,
    leaving: &[&WorkflowRecord],
) -> Option<HeldRemoval> {
    let active = world.workflow_records(&source.name);
    let active = active.filter(|record| is_active(record)).count();
    let folder_changed = leaving
        .iter()
        .any(|record| !is_in_folder(record, &source.folder));
    let are_all = leaving.len() >= 2 && leaving.len() == active;
    let mut names: Vec<String> = leaving.iter().map(|record| record.name.clone()).collect();
    names.sort_unstable();
    names.truncate(HELD_NAMES);
    (folder_changed || are_all).then_some(HeldRemoval {
        workflows: leaving.len() as u64,
        names,
        folder_changed,
    })
}

/// True if the file of the last active revision is in this folder.
fn is_in_folder(record: &WorkflowRecord, folder: &str) -> bool {
    let stem = match folder {
        "" => record.name.clone(),
        folder => format!("{folder}/{}", record.name),
    };
    let extension = record.file.strip_prefix(&stem);
    matches!(extension, Some(".yaml" | ".yml"))
}

fn is_active(record: &WorkflowRecord) -> bool {
    match record.status {
        WorkflowStatus::Active => true,
        WorkflowStatus::Retired { .. } => false,
    }
}

/// True if the record holds a commit because the file is invalid.
fn is_held(record: Option<&Arc<WorkflowRecord>>) -> bool {
    let held = record.and_then(|record| record.held.as_ref());
    held.is_some_and(|held| held.until.is_none())
}

#[cfg(test)]
mod tests;
