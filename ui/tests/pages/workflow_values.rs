//! Values of workflows, scans and revisions.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use wire::*;

use crate::values::*;

pub(crate) fn diagnostic(texts: Texts, severity: Severity) -> Diagnostic {
    Diagnostic {
        file: texts.text("workflows/net/recon.yaml"),
        line: 2,
        column: 3,
        end_line: 2,
        end_column: 9,
        severity,
        code: texts.text("unknown_key"),
        message: texts.text("unknown key `setps`"),
        hint: Some(texts.text("did you mean `steps`?")),
    }
}

pub(crate) fn revision(texts: Texts, number: u64) -> Revision {
    let named = revision_ref(texts, number);
    Revision {
        id: named.id,
        number,
        commit: named.commit,
        activated_at: (number != 10).then(|| ago(7_200)),
        sha256: Some(texts.text("c0ffee")),
    }
}

pub(crate) fn scan(texts: Texts) -> Scan {
    let input = |key: &str, kind: &str, required, default: &str| ScanInput {
        key: texts.text(key),
        kind: kind.to_owned(),
        options: Vec::new(),
        required,
        default: texts.text(default),
    };
    Scan {
        name: texts.text("probe"),
        cron: Some(texts.text("0 */6 * * *")),
        timezone: Some(texts.text("Europe/Berlin")),
        expr: Some(texts.text("scans.hosts.has_diff()")),
        inputs: Some(vec![
            input("domain", "string", true, ""),
            ScanInput {
                default: "true".to_owned(),
                ..input("deep", "bool", false, "")
            },
            ScanInput {
                default: "2.5".to_owned(),
                ..input("delay", "number", false, "")
            },
            ScanInput {
                options: vec![texts.text("small"), texts.text("large")],
                ..input("size", "choice", false, "large")
            },
        ]),
        artifacts: vec![texts.text("hosts")],
        reads: vec![Reading {
            scan: texts.text("hosts"),
            how: How::Starts,
        }],
        steps: 4,
        runs_on: vec![texts.text("gpu")],
        checkout: Some(texts.text("scripts")),
        retry: Some(ScanRetry {
            attempts: 3,
            backoff: "30s".to_owned(),
        }),
    }
}

pub(crate) fn workflow(texts: Texts) -> Workflow {
    Workflow {
        id: id(1),
        source: texts.text("infra"),
        name: texts.text("net/recon"),
        title: Some(texts.text("Reconnaissance")),
        description: Some(texts.text("Finds hosts and reports what is new.")),
        state: "active".to_owned(),
        retired: Some(explanation(texts)),
        suspended: Some(suspension(texts, SuspendedPart::Workflow)),
        resumed: Some(resumption(texts)),
        suspended_scans: vec![texts.text("probe")],
        revision: revision(texts, 12),
        scans: vec![scan(texts)],
        warnings: vec![diagnostic(texts, Severity::Warning)],
        stale: Some(stale(texts)),
    }
}

pub(crate) fn suspension(texts: Texts, part: SuspendedPart) -> Suspension {
    Suspension {
        part,
        since: ago(3_600),
        by: texts.text("token ada"),
        reason: texts.text("the machine is serviced"),
    }
}

pub(crate) fn resumption(texts: Texts) -> Resumption {
    Resumption {
        at: ago(7_200),
        by: texts.text("token ada"),
        reason: Some(texts.text("it is back")),
    }
}

pub(crate) fn stale(texts: Texts) -> StaleFile {
    StaleFile {
        file: texts.text("workflows/net/recon.yaml"),
        commit: texts.text("77ab03e11"),
        since: ago(600),
        last_good: Some(revision_ref(texts, 12)),
        diagnostics: vec![diagnostic(texts, Severity::Error)],
        excerpt: Some(Excerpt {
            first: 2,
            lines: ["scans:", "  hosts:", "    stepps:"]
                .map(|line| texts.text(line))
                .to_vec(),
        }),
    }
}

pub(crate) fn job_line(texts: Texts, number: u128, state: JobState) -> JobLine {
    JobLine {
        id: id(number),
        state,
        trigger: Trigger::Cron,
        revision: id(112),
        reason: Some(texts.text("steps_succeeded")),
        runner: Some(texts.text("north-1")),
        retried_by: None,
        causes: Vec::new(),
        created_at: ago(4_000),
        started_at: Some(ago(3_990)),
        finished_at: Some(ago(3_900)),
        artifacts: BTreeMap::from([(
            texts.text("hosts"),
            ArtifactLine {
                content_digest: texts.text("4f1c"),
                size: 2_048,
            },
        )]),
        bytes: 9_000,
    }
}

pub(crate) fn scan_status(texts: Texts, state: Option<JobState>) -> ScanStatus {
    ScanStatus {
        workflow: workflow_ref(texts),
        scan: scan(texts),
        suspended: state
            .is_none()
            .then(|| suspension(texts, SuspendedPart::Workflow)),
        resumed: Some(resumption(texts)),
        next_slot: Some(now() + TimeDelta::hours(2)),
        unfinished: 1,
        finished: FinishedJobs {
            succeeded: 1_204,
            failed: 2,
            cancelled: 1,
            skipped: 0,
        },
        last_job: state.map(|state| job_line(texts, 8, state)),
    }
}
