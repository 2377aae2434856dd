//! Converts sources and projects, with the vars and secrets that expressions read.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Edit, EncodingCheck, KeyState, MaskingCheck, NamedBy, Seen, Source, SourceCondition, StaleFile,
    StoredSecret, Timestamp, TipRecord, TipRef, Var, WorkflowStatus,
};
use reconciler::{Access, TokenSource};

use crate::convert::{Convert, diagnostic, revision_ref};

/// The poll status of a source, which is not in its record.
pub(crate) struct PollStatus<'a> {
    /// None if the source is no longer configured.
    pub(crate) access: Option<&'a Access>,
    /// When the repository was last read.
    pub(crate) checked_at: Option<Timestamp>,
}

fn access(access: &Access) -> wire::SourceAccess {
    let (token_file, token_command) = match access.login.as_ref().map(|login| &login.token) {
        Some(TokenSource::File(path)) => (Some(path.display().to_string()), None),
        Some(TokenSource::Command { program, .. }) => (None, Some(program.clone())),
        None => (None, None),
    };
    wire::SourceAccess {
        token_file,
        token_command,
        username: access
            .login
            .as_ref()
            .map(|login| login.username.as_str().to_owned()),
        ca_file: access
            .ca_file
            .as_ref()
            .map(|path| path.display().to_string()),
    }
}

pub(crate) fn source(seen: Seen<'_>, source: &Source, poll_status: PollStatus<'_>) -> wire::Source {
    let active = seen.workflows().filter(|workflow| {
        workflow.record.source == source.name && workflow.record.status == WorkflowStatus::Active
    });
    wire::Source {
        name: source.name.to_string(),
        project_id: source.project.uuid(),
        url: source.url.clone(),
        reference: source.reference.clone(),
        path: source.folder.clone(),
        interval_seconds: source.interval_seconds,
        access: poll_status.access.map_or_else(Default::default, access),
        tip: source.tip.as_ref().map(tip),
        checked_at: poll_status.checked_at,
        conditions: source.conditions.iter().map(condition).collect(),
        stale_files: source
            .stale_files
            .iter()
            .map(|stale| stale_file(seen, stale))
            .collect(),
        warnings: source.warnings.iter().map(diagnostic).collect(),
        active_workflows: active.count() as u64,
    }
}

pub(crate) fn project(seen: Seen<'_>, source: &Source) -> wire::Project {
    let vars = seen.vars(source.project);
    let secrets = seen.secrets(source.project);
    wire::Project {
        id: source.project.uuid(),
        name: source.name.to_string(),
        configured: source.configured,
        vars: vars.map_or(0, |record| record.vars.len() as u64),
        secrets: secrets.map_or(0, |record| record.secrets.len() as u64),
        missing_vars: Vec::new(),
        missing_secrets: Vec::new(),
    }
}

/// The scans that name each var or secret of a project.
type UsedBy = BTreeMap<String, BTreeSet<NamedBy>>;

pub(crate) fn named(source: &Source, name: &str, edit: &Edit, uses: &UsedBy) -> wire::Named {
    wire::Named {
        name: name.to_owned(),
        version: edit.version,
        updated_at: edit.at,
        updated_by: edit.by.to_string(),
        used_by: used_by(source.name.as_str(), uses.get(name)),
    }
}

pub(crate) fn var(source: &Source, name: &str, var: &Var, uses: &UsedBy) -> wire::Var {
    wire::Var {
        named: named(source, name, &var.edit, uses),
        value: var.value.clone(),
    }
}

pub(crate) fn secret(
    source: &Source,
    name: &str,
    secret: &StoredSecret,
    key_state: KeyState,
    uses: &UsedBy,
) -> wire::Secret {
    wire::Secret {
        named: named(source, name, &secret.edit, uses),
        key: secret.sealed.key.to_string(),
        key_state: key_state.converted(),
    }
}

pub(crate) fn masking(name: &str, check: MaskingCheck) -> wire::Masking {
    let encoding = |check: EncodingCheck| wire::EncodingMasking {
        encoding: check.encoding.to_owned(),
        masked: check.missed.is_none(),
        reason: check.missed.map(Convert::converted),
    };
    wire::Masking {
        name: name.to_owned(),
        encodings: check.encodings.into_iter().map(encoding).collect(),
        short_lines: check.short_lines,
    }
}

/// The names that scans of a project use although they are not set.
pub(crate) fn missing(
    project: &str,
    uses: &UsedBy,
    is_set: impl Fn(&str) -> bool,
) -> Vec<wire::MissingName> {
    let missing = uses.iter().filter(|(name, _)| !is_set(name));
    missing
        .map(|(name, by)| wire::MissingName {
            name: name.clone(),
            used_by: used_by(project, Some(by)),
        })
        .collect()
}

fn used_by(source: &str, by: Option<&BTreeSet<NamedBy>>) -> Vec<wire::ScanName> {
    by.into_iter()
        .flatten()
        .map(|NamedBy { workflow, scan }| wire::ScanName {
            workflow: format!("{source}/{workflow}"),
            scan: scan.to_string(),
        })
        .collect()
}

pub(crate) fn tip(tip: &TipRef) -> wire::Tip {
    wire::Tip {
        number: tip.number,
        commit: tip.commit.clone(),
        summary: tip.summary.clone(),
        author: tip.author.clone(),
        seen_at: tip.seen_at,
        history_rewritten: tip.history_rewritten,
        passed_over: Vec::new(),
        more_passed_over: false,
    }
}

pub(crate) fn recorded_tip(record: TipRecord) -> wire::Tip {
    wire::Tip {
        passed_over: record.skipped,
        more_passed_over: record.more_skipped,
        ..tip(&record.tip)
    }
}

pub(crate) fn condition(condition: &SourceCondition) -> wire::Condition {
    wire::Condition {
        kind: condition.kind.name().to_owned(),
        status: condition.status.name().to_owned(),
        reason: condition.reason.code().to_owned(),
        message: condition.reason.to_string(),
        changed_at: condition.changed_at,
    }
}

pub(crate) fn stale_file(seen: Seen<'_>, stale: &StaleFile) -> wire::StaleFile {
    wire::StaleFile {
        file: stale.file.clone(),
        commit: stale.commit.clone(),
        since: stale.since,
        last_good: seen.last_good(stale).map(revision_ref),
        diagnostics: stale.diagnostics.iter().map(diagnostic).collect(),
        excerpt: stale.excerpt.as_ref().map(|excerpt| wire::Excerpt {
            first: excerpt.first,
            lines: excerpt.lines.clone(),
        }),
    }
}
