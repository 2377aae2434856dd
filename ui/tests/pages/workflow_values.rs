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
        description: None,
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
        callback: Some(texts.text("shop")),
        inputs: Some(vec![
            ScanInput {
                description: Some(texts.text("The domain and all below it.")),
                ..input("domain", "string", true, "")
            },
            ScanInput {
                description: Some(texts.text("Look at every port")),
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
        callback_server: Some(texts.text("shop")),
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
        expect: Some(Expectations {
            success_every: Some("1d2h".to_owned()),
            ..Expectations::default()
        }),
        proposed: Some(Expectations {
            success_every: Some("1d1h".to_owned()),
            at_most: Some("21m".to_owned()),
            ..Expectations::default()
        }),
        last_job: state.map(|state| job_line(texts, 8, state)),
    }
}

/// An unfinished job in an answer to `why`.
fn unfinished(job: &Job) -> UnfinishedJob {
    UnfinishedJob {
        id: job.id,
        state: job.state,
        trigger: Trigger::Expr,
        created_at: ago(260),
        waiting: job.waiting.clone(),
        not_before: job.not_before,
        attempt: job.attempt,
        attempts: job.attempts,
        log_cut: None,
    }
}

pub(crate) fn circle(texts: Texts) -> Circle {
    Circle {
        scans: vec![texts.text("probe"), texts.text("report")],
        laps: 101,
        job: id(3),
    }
}

pub(crate) fn why(texts: Texts) -> Why {
    Why {
        workflow: texts.text("infra/net/recon"),
        scan: texts.text("probe"),
        state: "active".to_owned(),
        removed_by: Some(revision_ref(texts, 13)),
        renamed_from: Some(texts.text("former")),
        renamed_to: Some(texts.text("heir")),
        suspended: Some(suspension(texts, SuspendedPart::Scan)),
        resumed: Some(resumption(texts)),
        cron: Some(Schedule {
            schedule: texts.text("0 */6 * * *"),
            description: texts.text("every 6 hours"),
            timezone: texts.text("Europe/Berlin"),
            next: Some(now()),
            next_schedule: None,
            ahead: Some(now() + TimeDelta::hours(3)),
        }),
        callback: Some(Listening {
            server: texts.text("shop"),
            id: Some("abcdefghijklmnop".to_owned()),
            min_interval: "1m".to_owned(),
            problem: None,
            considered: Some(40),
            waiting: Some(WaitingInteractions {
                first: 41,
                last: 45,
                count: 4,
                own: 1,
                until: texts.text("the scan is resumed"),
            }),
        }),
        expr: Some(Watching {
            expression: texts.text("scans.hosts.has_diff()"),
            now: Some(Evaluation {
                clause: clause(texts),
                scans: BTreeMap::new(),
            }),
            after_successes: vec![texts.text("hosts")],
            after_failures: vec![texts.text("backup"), texts.text("probe")],
        }),
        dispatch: true,
        unfinished: vec![
            unfinished(&job(texts, 10, JobState::Scheduled)),
            unfinished(&crate::all::pending_retry(texts)),
            unfinished(&Job {
                attempt: Some(2),
                attempts: Some(4),
                ..job(texts, 3, JobState::Running)
            }),
        ],
        newest: Some(CausedJob {
            id: id(3),
            created_at: ago(260),
            causes: vec![id(2), id(1)],
        }),
        circle: Some(circle(texts)),
        cut_job: Some(CutJob {
            id: id(2),
            log_cut: LogCut {
                record: 9,
                limit: 10,
            },
        }),
        messages: vec![delivery(texts)],
        records: Vec::new(),
        damaged: Vec::new(),
    }
}

pub(crate) fn several_schedules(texts: Texts) -> Why {
    let mut why = why(texts);
    why.suspended = None;
    if let Some(cron) = &mut why.cron {
        cron.schedule = texts.text("0 */6 * * *; 0 12 * * 6");
        cron.description = texts.text("at minute 0 past every 6th hour; at 12:00, on Saturday");
        cron.next_schedule = Some(texts.text("0 */6 * * *"));
        cron.ahead = None;
    }
    Why { expr: None, ..why }
}

pub(crate) fn revision_text(texts: Texts) -> RevisionText {
    RevisionText {
        revision: revision(texts, 12),
        file: texts.text("workflows/net/recon.yaml"),
        text: format!("scans:\n  probe: # {}\n    steps: []\n", texts.0),
        valid: false,
        scans: vec![scan(texts)],
        diagnostics: vec![diagnostic(texts, Severity::Error)],
    }
}

pub(crate) fn revision_diff(texts: Texts) -> RevisionDiff {
    let change = |part, edit| Change {
        part,
        member: Some(texts.text("run")),
        edit,
        read_by: vec![texts.text("report")],
    };
    let rewritten = Edit::Rewritten {
        removed: 1,
        added: 1,
        lines: vec![
            format!("-{}", texts.text("old")),
            format!("+{}", texts.text("new")),
        ],
    };
    let (from, to) = (texts.text("1h"), texts.text("2h"));
    let name = texts.text("MODE");
    let difference = |fate, changes| ScanDifference {
        scan: texts.text("probe"),
        fate,
        changes,
    };
    RevisionDiff {
        from: revision_ref(texts, 11),
        to: revision_ref(texts, 12),
        difference: Difference {
            workflow: vec![change(Part::Env { name }, Edit::Added { to: to.clone() })],
            scans: vec![
                difference(
                    Fate::Changed,
                    vec![
                        change(Part::Step { position: 2 }, rewritten),
                        change(
                            Part::Itself,
                            Edit::Changed {
                                from: from.clone(),
                                to,
                            },
                        ),
                    ],
                ),
                difference(
                    Fate::Renamed {
                        from,
                        goes_on: false,
                    },
                    Vec::new(),
                ),
                difference(Fate::Added, Vec::new()),
            ],
        },
        lines: Vec::new(),
        untouched: vec![texts.text("hosts"), texts.text("report")],
        next_slots: vec![
            SlotDifference {
                scan: texts.text("probe"),
                from: vec![now().fixed_offset()],
                to: vec![
                    (now() + TimeDelta::hours(1)).fixed_offset(),
                    (now() + TimeDelta::hours(2)).fixed_offset(),
                ],
            },
            SlotDifference {
                scan: texts.text("report"),
                from: Vec::new(),
                to: vec![now().fixed_offset()],
            },
        ],
        text: TextDifference {
            hunks: vec![hunk(texts, 1, 1), hunk(texts, 41, 42)],
            cut: true,
        },
    }
}

fn hunk(texts: Texts, from_line: u64, to_line: u64) -> Hunk {
    Hunk {
        from_line,
        to_line,
        lines: vec![
            format!(" {}", texts.text("steps:")),
            format!("-{}", texts.text("  - run: old")),
            format!("+{}", texts.text("  - run: new")),
            " ".to_owned(),
        ],
    }
}
