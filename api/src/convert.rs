//! Converts the domain's types to those of `wire` by hand, so that a renamed field cannot change the contract.

pub(crate) mod callback_rules;
pub(crate) mod callbacks;
pub(crate) mod channels;
pub(crate) mod conditions;
pub(crate) mod diff;
mod enums;
mod jobs;
pub(crate) mod payloads;
pub(crate) mod scans;
pub(crate) mod sources;
pub(crate) mod why;
mod workflows;

use std::collections::BTreeSet;

use model::{
    JobId, ProjectId, Projects, Reason, RevisionRef, Runner, Seen, Slots, Timestamp, Token,
    WorkflowRef,
};
use state::DamagedLines;

pub(crate) use self::enums::Convert;
pub(crate) use self::jobs::{
    artifact, inline_inputs, job, log_cut, log_matches, reported_left_out, reported_progress,
    reported_step, runner_job, runner_ref, state, steps,
};
pub(crate) use self::workflows::{resumption, revision, scan, suspension, workflow};

pub(crate) fn workflow_ref(workflow: &WorkflowRef) -> wire::WorkflowRef {
    wire::WorkflowRef {
        id: workflow.id.uuid(),
        source: workflow.source.to_string(),
        name: workflow.name.clone(),
    }
}

pub(crate) fn revision_ref(revision: &RevisionRef) -> wire::RevisionRef {
    wire::RevisionRef {
        id: revision.id.uuid(),
        number: revision.number,
        commit: revision.commit.clone(),
    }
}

pub(crate) fn explanation(reason: &Reason) -> wire::Explanation {
    let jobs: &[JobId] = if let Reason::RunnersBusy { jobs, .. } = reason {
        jobs
    } else {
        &[]
    };
    wire::Explanation {
        code: reason.code().to_owned(),
        message: reason.to_string(),
        jobs: jobs.iter().map(|job| job.uuid()).collect(),
    }
}

pub(crate) fn damaged(damaged: Vec<DamagedLines>) -> Vec<wire::DamagedLines> {
    let damaged = damaged.into_iter();
    damaged
        .map(|DamagedLines { file, lines }| wire::DamagedLines { file, lines })
        .collect()
}

pub(crate) fn diagnostic(diagnostic: &workflow::Diagnostic) -> wire::Diagnostic {
    wire::Diagnostic {
        file: diagnostic.file.clone(),
        line: diagnostic.line,
        column: diagnostic.column,
        end_line: diagnostic.end_line,
        end_column: diagnostic.end_column,
        severity: diagnostic.severity.converted(),
        code: diagnostic.code.name().to_owned(),
        message: diagnostic.message.clone(),
        hint: diagnostic.hint.clone(),
    }
}

/// The names of projects. None for all projects.
pub(crate) fn projects(seen: Seen<'_>, projects: &Projects) -> Option<Vec<String>> {
    let name = |project: &ProjectId| match seen.source_of(*project) {
        Some(source) => source.name.to_string(),
        None => project.to_string(),
    };
    match projects {
        Projects::All => None,
        Projects::Only(projects) => Some(projects.iter().map(name).collect()),
    }
}

pub(crate) fn token(seen: Seen<'_>, token: &Token, now: Timestamp) -> wire::Token {
    wire::Token {
        id: token.id.uuid(),
        name: token.name.clone(),
        user: seen.user_name(token.owner).to_owned(),
        scopes: token
            .scopes
            .iter()
            .map(|scope| scope.name().to_owned())
            .collect(),
        projects: projects(seen, &token.projects),
        created_at: token.created_at,
        expires_at: token.expires_at,
        expires_soon: token.expires_soon(now),
        former_expires_at: token.former.as_ref().map(|former| former.expires_at),
        last_used: token.last_used,
    }
}

/// A runner. Finished jobs that still take its slots are added later.
pub(crate) fn runner(
    seen: Seen<'_>,
    runner: &Runner,
    slots: &Slots,
    heard_at: Option<Timestamp>,
    connected: bool,
) -> wire::Runner {
    let (own, has_other_projects) = match &runner.projects {
        Projects::All => (Projects::All, false),
        Projects::Only(all) => {
            let own: BTreeSet<_> = all.iter().copied().filter(|it| seen.sees(*it)).collect();
            let has_others = own.len() < all.len();
            (Projects::Only(own), has_others)
        }
    };
    wire::Runner {
        id: runner.id.uuid(),
        name: runner.name.clone(),
        labels: runner.labels.clone(),
        exclusive: runner.exclusive,
        projects: projects(seen, &own),
        has_other_projects,
        capacity: runner.capacity,
        version: runner.version.clone(),
        capabilities: runner.capabilities.clone(),
        registered_at: runner.registered_at,
        heard_at,
        connected,
        running: seen
            .running_on(runner.id)
            .map(|job| job.id.uuid())
            .collect(),
        taken: slots.taken(),
        jobs: seen
            .running_on(runner.id)
            .map(|job| runner_job(job))
            .collect(),
    }
}

pub(crate) fn blob(blob: &model::Blob) -> wire::Blob {
    wire::Blob {
        path: blob.path.to_string(),
        size: blob.size,
        sha256: blob.sha256.clone(),
        modified_at: blob.modified_at,
        modified_by: blob.by.to_string(),
        expires_at: blob.expires_at,
    }
}

pub(crate) fn blob_link(link: &model::BlobLink) -> wire::BlobLink {
    wire::BlobLink {
        id: link.id.uuid(),
        path: link.path.to_string(),
        use_for: link.use_for.converted(),
        created_at: link.created_at,
        expires_at: link.expires_at,
    }
}
