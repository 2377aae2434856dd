//! Workflows, their revisions and the declarations of their scans.

use model::{RevisionRecord, RevisionRef, Seen, Suspension, WorkflowRecord, WorkflowStatus};

use super::sources;
use super::{Convert, diagnostic, explanation};

/// A workflow. Without a readable revision it has no scans.
pub(crate) fn workflow(seen: Seen<'_>, record: &WorkflowRecord) -> wire::Workflow {
    let WorkflowRecord {
        id,
        source,
        name,
        status,
        ..
    } = record;
    let newest = seen.revision(record);
    let definition = newest.map(|newest| &newest.definition);
    let stale = seen.stale_file(record);
    let own = seen.latest_suspension(*id, None).map(|latest| &**latest);
    let state = match (status, definition) {
        (WorkflowStatus::Retired { .. }, _) => "retired",
        (WorkflowStatus::Active, Some(_)) => "active",
        (WorkflowStatus::Active, None) => "unreadable",
    };
    wire::Workflow {
        id: id.uuid(),
        source: source.to_string(),
        name: name.clone(),
        title: definition.and_then(|definition| definition.name.clone()),
        description: definition.and_then(|definition| definition.description.clone()),
        state: state.to_owned(),
        retired: seen.retirement(record).as_ref().map(explanation),
        suspended: own.and_then(suspension),
        resumed: own.and_then(resumption),
        suspended_scans: definition
            .into_iter()
            .flat_map(|definition| definition.scans())
            .filter(|scan| {
                let latest = seen.latest_suspension(*id, Some(&scan.name));
                latest.is_some_and(|latest| latest.is_in_force())
            })
            .map(|scan| scan.name.to_string())
            .collect(),
        revision: revision(&record.revision, newest.map(|newest| &newest.record)),
        scans: definition
            .into_iter()
            .flat_map(|definition| definition.scans().map(|it| scan(definition, it)))
            .collect(),
        warnings: newest
            .into_iter()
            .flat_map(|newest| newest.warnings.iter().map(diagnostic))
            .collect(),
        stale: stale.map(|stale| sources::stale_file(seen, stale)),
    }
}

pub(crate) fn suspension(latest: &Suspension) -> Option<wire::Suspension> {
    latest.is_in_force().then(|| wire::Suspension {
        part: latest.part().converted(),
        since: latest.since,
        by: latest.by.to_string(),
        reason: latest.reason.clone(),
    })
}

pub(crate) fn resumption(latest: &Suspension) -> Option<wire::Resumption> {
    let resumed = latest.resumed.as_ref()?;
    Some(wire::Resumption {
        at: resumed.at,
        by: resumed.by.to_string(),
        reason: resumed.reason.clone(),
    })
}

pub(crate) fn revision(reference: &RevisionRef, record: Option<&RevisionRecord>) -> wire::Revision {
    wire::Revision {
        id: reference.id.uuid(),
        number: reference.number,
        commit: reference.commit.clone(),
        activated_at: record.map(|record| record.activated_at),
        sha256: record.map(|record| record.text.sha256.clone()),
    }
}

pub(crate) fn scan(workflow: &workflow::Workflow, scan: &workflow::Scan) -> wire::Scan {
    let reads = workflow.reads(scan).into_iter();
    wire::Scan {
        name: scan.name.to_string(),
        reads: reads.map(reading).collect(),
        cron: scan.on.cron.as_ref().map(|cron| cron.source().to_owned()),
        timezone: scan
            .on
            .cron
            .as_ref()
            .map(|_| scan.on.timezone.name().to_owned()),
        callback: scan.on.callback.as_ref().map(|on| on.server.to_string()),
        expr: scan.on.expr.as_ref().map(|expr| expr.source().to_owned()),
        inputs: scan
            .on
            .dispatch
            .as_ref()
            .map(|dispatch| dispatch.inputs.iter().map(scan_input).collect()),
        artifacts: scan
            .artifacts
            .iter()
            .map(|artifact| artifact.name.clone())
            .collect(),
        steps: u32::try_from(scan.steps.len()).unwrap_or(u32::MAX),
        runs_on: scan.runs_on.clone(),
        checkout: scan.checkout.as_ref().map(workflow::Checkout::shown),
        callback_server: scan.callback.as_ref().map(ToString::to_string),
        retry: scan.retry.map(|retry| wire::ScanRetry {
            attempts: retry.attempts,
            backoff: workflow::format_duration(retry.backoff),
        }),
    }
}

fn reading(reading: workflow::Reading) -> wire::Reading {
    wire::Reading {
        scan: reading.scan.to_string(),
        how: reading.how.converted(),
    }
}

fn scan_input(declared: &workflow::Input) -> wire::ScanInput {
    wire::ScanInput {
        key: declared.key.clone(),
        description: declared.description.clone(),
        kind: declared.kind.name().to_owned(),
        options: declared.options.clone(),
        required: declared.required,
        default: declared.default.to_string(),
    }
}
