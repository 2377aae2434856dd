//! Checks a workflow's folder: the record, and the revisions with their texts. `scans.rs` checks the scans.

use model::{RevisionRecord, WorkflowRecord};
use store::Key;
use store::look::Role;
use workflow::{TemplatePolicy, sha256};

use super::check::{Check, join};
use super::finding::Code;
use super::scans;
use crate::layout::{Layout, RecordPlace};
use crate::record::Typed;

pub(crate) fn check(check: &mut Check<'_>, folder: &str) {
    let mut record = None;
    let mut scans = Vec::new();
    let mut revisions = Vec::new();
    for entry in check.entries(folder) {
        let path = join(folder, &entry.name);
        match (entry.role, entry.name.as_str()) {
            (Role::File(key), _) => match RecordPlace::parse(&key) {
                Some(RecordPlace::Workflow) => record = Some(key),
                Some(RecordPlace::WorkflowSuspension) => drop(check.record(&key)),
                Some(_) | None => check.unknown(&path),
            },
            (Role::Folder, "revisions") => revisions = check.only_folders(&path),
            (Role::Folder, "scans") => scans = check.only_folders(&path),
            _ => check.unknown(&path),
        }
    }
    let mut newest = 0;
    for folder in &revisions {
        newest = newest.max(check_revision(check, folder).unwrap_or(0));
    }
    let record = match record {
        Some(key) => match check.record(&key).map(|checked| checked.typed) {
            Some(Typed::Workflow(workflow)) => Some(workflow),
            Some(_) | None => None,
        },
        None => {
            if !revisions.is_empty() {
                let path = RecordPlace::Workflow.path_in(folder);
                check.find(Code::RecordMissing, path, "missing, but it has revisions");
            }
            None
        }
    };
    if let Some(workflow) = &record {
        check_newest(check, workflow, newest);
    }
    for folder in &scans {
        scans::check(check, folder);
    }
}

fn check_newest(check: &mut Check<'_>, workflow: &WorkflowRecord, newest: u64) {
    if !check
        .facts
        .learned
        .revisions
        .contains(&workflow.revision.id)
    {
        let what = format!(
            "it is the newest revision of `{}`, but not readable",
            workflow.name
        );
        let key = Layout::revision(workflow.id, &workflow.revision);
        check.find(Code::RecordMissing, key, what);
    }
    if newest > workflow.revision.number {
        let what = format!(
            "its newest revision is {}, but there is a revision {newest}",
            workflow.revision.number
        );
        check.find(Code::RecordAhead, Layout::workflow(workflow.id), what);
    }
}

/// Checks a revision and returns its number.
fn check_revision(check: &mut Check<'_>, folder: &str) -> Option<u64> {
    let (mut record, mut text) = (None, None);
    for entry in check.entries(folder) {
        let path = join(folder, &entry.name);
        match entry.role {
            Role::File(key) => match RecordPlace::parse(&key) {
                Some(RecordPlace::Revision) => record = Some(key),
                Some(RecordPlace::RevisionText) => text = Some(key),
                Some(_) | None => check.unknown(&path),
            },
            _ => check.unknown(&path),
        }
    }
    let Some(key) = record else {
        let path = RecordPlace::Revision.path_in(folder);
        check.find(Code::RecordMissing, path, "missing, but its folder exists");
        return None;
    };
    let Some(Typed::Revision(revision)) = check.record(&key).map(|checked| checked.typed) else {
        return None;
    };
    check.facts.learned.revisions.insert(revision.reference.id);
    check_text(check, &revision, text);
    Some(revision.reference.number)
}

fn check_text(check: &mut Check<'_>, revision: &RevisionRecord, text: Option<Key>) {
    let key = Layout::revision_text(revision.workflow.id, &revision.reference);
    let Some(bytes) = text.and_then(|key| check.content(&key)) else {
        check.find(Code::RevisionText, key, "it is missing");
        return;
    };
    let found = sha256(&bytes);
    if found != revision.text.sha256 {
        check.find(Code::RevisionText, key, format!("its SHA-256 is {found}"));
        return;
    }
    let is_valid = std::str::from_utf8(&bytes)
        .is_ok_and(|text| workflow::parse(&revision.file, text, TemplatePolicy::Warn).is_ok());
    if !is_valid {
        check.find(
            Code::RevisionText,
            key,
            "it is not a valid workflow any more",
        );
    }
}
