//! Records the state of sources.

use std::sync::Arc;

use serde::Serialize;
use workflow::notify::Rule;
use workflow::{Diagnostic, SETTINGS_FILE};

use super::rules::of_file;
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::{
    MESSAGE_CHARS, STALE_DIAGNOSTICS_BYTES, STALE_FILES_BYTES, TIP_VERDICTS_BYTES,
};
use crate::moment::Moment;
use crate::plan::Standing;
use crate::source::{
    FileVerdict, Removal, Source, SourceCondition, SourceConditionKind, StaleFile, Status,
    TipRecord, TipRef,
};
use crate::world::World;
use crate::{ProjectId, Reason, SourceName, Timestamp};

/// Add or update a source from the daemon's configuration.
#[derive(Debug, Clone)]
pub struct ConfigureSource {
    pub name: SourceName,
    /// The location of the repository, without credentials.
    pub url: String,
    /// Branch, tag or commit. None for the remote's default branch.
    pub reference: Option<String>,
    /// Folder of workflows within the repository.
    pub folder: String,
    /// Polling interval in seconds.
    pub interval_seconds: u64,
}

impl Command for ConfigureSource {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let before = world.source(&self.name);
        let mut source = before.map_or_else(
            || Source {
                project: ProjectId::of_source(&self.name),
                name: self.name.clone(),
                url: String::new(),
                reference: None,
                folder: String::new(),
                interval_seconds: 0,
                configured: true,
                tip: None,
                applied_commit: None,
                removal: None,
                default_reference: None,
                conditions: vec![SourceCondition {
                    kind: SourceConditionKind::Fetched,
                    status: Status::Unknown,
                    reason: Reason::NeverFetched,
                    changed_at: moment.now,
                }],
                stale_files: Vec::new(),
                warnings: Vec::new(),
            },
            |before| Source::clone(before),
        );
        source.configured = true;
        source.url = self.url;
        source.reference = self.reference;
        source.folder = self.folder;
        source.interval_seconds = self.interval_seconds;
        // A change of the configuration revokes an approval.
        source.removal = source.removal.map(|_| Removal::Held);
        Ok(replace(before, source))
    }
}

/// Record that a source is no longer configured.
#[derive(Debug, Clone)]
pub struct DropSource {
    pub name: SourceName,
}

impl Command for DropSource {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let before = find(world, &self.name)?;
        let source = Source {
            configured: false,
            ..Source::clone(before)
        };
        Ok(replace(Some(before), source))
    }
}

/// Record a poll that found no new tip. Nothing is written if the outcome is the same as before.
#[derive(Debug, Clone)]
pub struct RecordPoll {
    pub name: SourceName,
    /// True if the repository was read.
    pub status: Status,
    pub reason: Reason,
}

impl Command for RecordPoll {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let before = find(world, &self.name)?;
        let mut source = Source::clone(before);
        source.set_condition(
            SourceConditionKind::Fetched,
            self.status,
            self.reason,
            moment.now,
        );
        Ok(replace(Some(before), source))
    }
}

/// Record that a part of a tip could not be stored. The other parts are active; the next poll retries the tip.
#[derive(Debug, Clone)]
pub struct RecordApplyFailure {
    pub name: SourceName,
    /// The first workflow file that failed.
    pub file: String,
    pub message: String,
    /// Number of files that failed.
    pub files: u64,
}

impl Command for RecordApplyFailure {
    type Answer = ();
    /// A full disk can be the failure to record.
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let before = find(world, &self.name)?;
        let mut source = Source::clone(before);
        let reason = Reason::ApplyFailed {
            file: self.file,
            message: self.message.chars().take(MESSAGE_CHARS).collect(),
            files: self.files,
        };
        source.set_condition(
            SourceConditionKind::Fetched,
            Status::True,
            Reason::Fetched,
            moment.now,
        );
        source.set_condition(
            SourceConditionKind::Active,
            Status::False,
            reason,
            moment.now,
        );
        Ok(replace(Some(before), source))
    }
}

/// Record a tip after all its changes were decided.
#[derive(Debug, Clone)]
pub struct RecordTip {
    pub name: SourceName,
    pub commit: String,
    /// First line of the message.
    pub summary: String,
    pub author: String,
    /// True if the previous tip is not an ancestor of this tip.
    pub history_rewritten: bool,
    /// Commits between the previous tip and this tip.
    pub skipped: Vec<String>,
    pub more_skipped: bool,
    /// The files whose state changed. A very long list is cut in the record.
    pub files: Vec<FileVerdict>,
    /// Files that are invalid at this tip.
    pub stale_files: Vec<StaleFile>,
    /// The rules of `everscan.yaml` at this tip. None if it is invalid.
    pub rules: Option<Vec<Rule>>,
    /// Warnings about the repository at this tip, without those about workflow files.
    pub warnings: Vec<Diagnostic>,
    /// Number of workflow files at this tip.
    pub file_count: u64,
    pub standing: Standing,
    /// The branch to which the remote's HEAD points. Set only if no reference is configured.
    pub default_reference: Option<String>,
}

impl Command for RecordTip {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let before = find(world, &self.name)?;
        let mut source = Source::clone(before);
        let same_commit = before.tip.as_ref().filter(|tip| tip.commit == self.commit);
        let tip = same_commit.cloned().unwrap_or_else(|| TipRef {
            number: before.tip.as_ref().map_or(0, |tip| tip.number) + 1,
            commit: self.commit,
            summary: self.summary,
            author: self.author,
            seen_at: moment.now,
            history_rewritten: self.history_rewritten,
        });
        let invalid = self.stale_files.len() as u64;
        let has_no_valid_version = |stale: &&StaleFile| world.last_good(stale).is_none();
        let workflows = self
            .stale_files
            .iter()
            .filter(|stale| stale.file != SETTINGS_FILE);
        let without_good = workflows.filter(has_no_valid_version).count() as u64;
        let active = self.file_count.saturating_sub(invalid);
        let folder = source.folder.clone();
        let is_applied = matches!(self.standing, Standing::Applied | Standing::NoFolder);
        let is_held = matches!(self.standing, Standing::Held(_));
        let unapplied =
            |reason: Reason| [(Status::Unknown, reason.clone()), (Status::False, reason)];
        let [(valid, valid_reason), (running, running_reason)] = match self.standing {
            Standing::NoFolder => {
                let reason = Reason::FolderMissing { folder };
                [(Status::True, reason.clone()), (Status::True, reason)]
            }
            Standing::Applied if self.file_count == 0 => {
                let reason = Reason::NoWorkflows { folder };
                [(Status::True, reason.clone()), (Status::True, reason)]
            }
            Standing::Applied if invalid == 0 => [
                (Status::True, Reason::FilesValid),
                (Status::True, Reason::TipActive),
            ],
            Standing::Applied => {
                let files = self.file_count;
                let found = Reason::FilesInvalid {
                    invalid,
                    files,
                    without_good,
                };
                [
                    (Status::False, found),
                    (Status::False, Reason::TipPartlyActive { active, files }),
                ]
            }
            Standing::Unreadable(what) => unapplied(Reason::FolderUnreadable { folder, what }),
            Standing::Held(removal) => unapplied(Reason::RemovalHeld {
                source: self.name.clone(),
                workflows: removal.workflows,
                names: removal.names,
                folder: removal.folder_changed.then_some(folder),
            }),
        };
        source.set_condition(
            SourceConditionKind::Fetched,
            Status::True,
            Reason::Fetched,
            moment.now,
        );
        source.set_condition(SourceConditionKind::Valid, valid, valid_reason, moment.now);
        source.set_condition(
            SourceConditionKind::Active,
            running,
            running_reason,
            moment.now,
        );
        source.applied_commit = if is_applied {
            None
        } else {
            let before = before.tip.as_ref().map(|tip| tip.commit.clone());
            source.applied_commit.or(before)
        };
        // The tip may have been approved after the plan was made.
        let approved = before.removal.filter(|_| same_commit.is_some());
        source.removal = is_held.then(|| approved.unwrap_or(Removal::Held));
        source.default_reference = self.default_reference;
        source.tip = Some(tip.clone());
        source.stale_files = stale_files(self.stale_files);
        source.warnings = self.warnings;
        let mut decision = replace(Some(before), source);
        let rules = self.rules.filter(|_| is_applied);
        decision
            .changes
            .extend(rules.and_then(|rules| of_file(world, before.project, rules)));
        if same_commit.is_none() {
            decision.changes.push(Change::Tip(Arc::new(TipRecord {
                source: self.name,
                tip,
                skipped: self.skipped,
                more_skipped: self.more_skipped,
                files: fitting(self.files, TIP_VERDICTS_BYTES),
                file_count: self.file_count,
            })));
        }
        Ok(decision)
    }
}

/// Approve a tip that removes many workflows. The next poll applies the tip.
#[derive(Debug, Clone)]
pub struct ApproveRemoval {
    pub name: SourceName,
    /// The approved commit.
    pub commit: String,
}

impl Command for ApproveRemoval {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    /// If the tip is not held, nothing changes, so a repeat is harmless.
    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let before = find(world, &self.name)?;
        let tip = before.tip.as_ref().map(|tip| &tip.commit);
        if tip != Some(&self.commit) {
            return Err(Refusal::NotTheTip {
                source_name: self.name.to_string(),
                commit: self.commit,
            });
        }
        let source = Source {
            removal: before.removal.map(|_| Removal::Approved),
            ..Source::clone(before)
        };
        Ok(replace(Some(before), source))
    }
}

/// Cuts stale files to the limits of a record. Each file gets an equal share of the space for its excerpt and its
/// diagnostics.
fn stale_files(mut files: Vec<StaleFile>) -> Vec<StaleFile> {
    let share = STALE_DIAGNOSTICS_BYTES / files.len().max(1);
    for file in &mut files {
        let excerpt = fitting(Vec::from_iter(file.excerpt.take()), share);
        let taken = json_bytes(&excerpt);
        file.excerpt = excerpt.into_iter().next();
        let room = share.saturating_sub(taken);
        file.diagnostics = fitting(std::mem::take(&mut file.diagnostics), room);
    }
    fitting(files, STALE_FILES_BYTES)
}

fn json_bytes(item: &impl Serialize) -> usize {
    serde_json::to_vec(item).map_or(usize::MAX, |json| json.len())
}

/// The first items that fit into `room` bytes of JSON.
fn fitting<T: Serialize>(mut items: Vec<T>, room: usize) -> Vec<T> {
    let sizes = items.iter().map(json_bytes);
    let ends = sizes.scan(0_usize, |end, size| {
        *end = end.saturating_add(size);
        Some(*end)
    });
    let count = ends.take_while(|end| *end <= room).count();
    items.truncate(count);
    items
}

fn find<'a>(world: &'a World, name: &SourceName) -> Result<&'a Arc<Source>, Refusal> {
    world.source(name).ok_or_else(|| Refusal::NoSuchSource {
        source_name: name.to_string(),
    })
}

fn replace(before: Option<&Arc<Source>>, source: Source) -> Decision<()> {
    if before.is_some_and(|before| **before == source) {
        Decision::unchanged(())
    } else {
        Decision::of([Change::Source(Arc::new(source))])
    }
}

impl Source {
    /// Sets a condition. Its time changes only with its status.
    fn set_condition(
        &mut self,
        kind: SourceConditionKind,
        status: Status,
        reason: Reason,
        now: Timestamp,
    ) {
        let mut conditions = self.conditions.iter_mut();
        match conditions.find(|condition| condition.kind == kind) {
            Some(condition) => {
                if condition.status != status {
                    condition.changed_at = now;
                }
                condition.status = status;
                condition.reason = reason;
            }
            None => self.conditions.push(SourceCondition {
                kind,
                status,
                reason,
                changed_at: now,
            }),
        }
    }
}
