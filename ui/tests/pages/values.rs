//! Values of `wire` for the tests. Each text goes through [`Texts`], so that the same pages can be built with harmless
//! and with hostile names.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use ui::shell::{Counts, Theme, Viewer, Visit};
use uuid::Uuid;
use wire::*;

/// A suffix for every text.
#[derive(Clone, Copy)]
pub(crate) struct Texts(pub(crate) &'static str);

impl Texts {
    pub(crate) fn text(self, text: &str) -> String {
        format!("{text}{}", self.0)
    }
}

pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 0).expect("a time in range")
}

pub(crate) fn ago(seconds: i64) -> DateTime<Utc> {
    now() - TimeDelta::seconds(seconds)
}

pub(crate) fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x0199_c3a2_0000_7000_8000_0000_0000_0000 + number)
}

pub(crate) fn visit(texts: Texts) -> Visit {
    Visit {
        viewer: Some(Viewer {
            name: texts.text("ada"),
            scopes: vec![Scope::Admin, Scope::JobRead],
            roles: None,
        }),
        version: texts.text("0.1.0"),
        theme: Theme::System,
        now: now(),
        counts: Counts {
            workflows: 6,
            jobs: 0,
            runners: 2,
            conditions: 3,
        },
        answers_form: false,
        form_key: id(0xf0),
    }
}

pub(crate) fn stranger(texts: Texts) -> Visit {
    Visit {
        viewer: None,
        ..visit(texts)
    }
}

/// A viewer who may only read.
pub(crate) fn reader(texts: Texts) -> Visit {
    with(
        texts,
        &[Scope::WorkflowRead, Scope::JobRead, Scope::ProjectRead],
    )
}

/// A viewer with these scopes.
pub(crate) fn with(texts: Texts, scopes: &[Scope]) -> Visit {
    Visit {
        viewer: Some(Viewer {
            name: "reader".to_owned(),
            scopes: scopes.to_vec(),
            roles: None,
        }),
        ..visit(texts)
    }
}

pub(crate) fn page<T>(items: Vec<T>) -> Page<T> {
    Page::all(items)
}

pub(crate) fn long_page<T>(items: Vec<T>, texts: Texts) -> Page<T> {
    Page {
        items,
        next_cursor: Some(texts.text("next=1&x")),
        damaged: vec![DamagedLines {
            file: texts.text("scans/probe/history"),
            lines: 2,
        }],
    }
}

pub(crate) fn workflow_ref(texts: Texts) -> WorkflowRef {
    WorkflowRef {
        id: id(1),
        source: texts.text("infra"),
        name: texts.text("net/recon"),
    }
}

pub(crate) fn revision_ref(texts: Texts, number: u64) -> RevisionRef {
    RevisionRef {
        id: id(100 + u128::from(number)),
        number,
        commit: texts.text("9f2c41d0aa55"),
    }
}

pub(crate) fn delivery(texts: Texts) -> Delivery {
    Delivery {
        at: ago(11),
        message: id(40),
        channel: texts.text("ops"),
        project: Some(texts.text("main")),
        attempt: 2,
        repeated: false,
        result: SendResult {
            result: DeliveryResult::Retry,
            reply: texts.text("503 Service Unavailable"),
        },
        retry_at: None,
        title: texts.text("Failed: main/recon probe"),
        events: 1,
        jobs: vec![id(6)],
    }
}

pub(crate) fn job(texts: Texts, number: u128, state: JobState) -> Job {
    let started = !matches!(state, JobState::Scheduled | JobState::Skipped);
    Job {
        id: id(number),
        workflow: workflow_ref(texts),
        revision: revision_ref(texts, 12),
        scan: texts.text("probe"),
        state,
        trigger: Trigger::Expr,
        reason: JobReason {
            code: if state == JobState::Failed {
                "step_failed"
            } else {
                "claimed"
            }
            .to_owned(),
            message: texts.text("claimed by a runner with `gpu`"),
            actor: texts.text("north-1"),
        },
        waiting: (state == JobState::Scheduled).then(|| explanation(texts)),
        inputs: BTreeMap::from([
            (texts.text("domain"), Input::Text(texts.text("example.org"))),
            ("deep".to_owned(), Input::Bool(true)),
            ("note".to_owned(), Input::Text(String::new())),
        ]),
        created_at: ago(260),
        dispatched_by: (state != JobState::Running).then(|| texts.text("token ada")),
        rerun_of: (state == JobState::Cancelled).then(|| id(4)),
        messages: (state == JobState::Failed)
            .then(|| delivery(texts))
            .into_iter()
            .collect(),
        storing: (state == JobState::Running).then(|| ArtifactProgress {
            name: texts.text("hosts"),
            phase: ArtifactPhase::Uploading,
            bytes: 3_200_000,
            of: 41_000_000,
        }),
        source: (state == JobState::Succeeded).then(|| JobSource {
            commit: "5".repeat(40),
            reference: texts.text("refs/heads/main"),
        }),
        retry_of: None,
        retried_by: (state == JobState::Failed).then(|| id(6)),
        attempt: None,
        attempts: None,
        not_before: None,
        causes: Vec::new(),
        hops: 0,
        callback: Some(CallbackCause {
            server: "abcdefghijklmnop".to_owned(),
            name: texts.text("shop"),
            first: 41,
            last: 45,
            count: 4,
            types: vec!["dns".to_owned()],
            job: Some(id(7)),
        }),
        started_at: started.then(|| ago(252)),
        finished_at: state.is_terminal().then(|| ago(12)),
        runner: started.then(|| RunnerRef {
            id: id(50),
            name: texts.text("north-1"),
        }),
        steps: if started {
            steps(texts, state)
        } else {
            Vec::new()
        },
        artifacts: if state == JobState::Succeeded {
            vec![artifact(texts), removed(texts)]
        } else {
            Vec::new()
        },
        outputs: if state == JobState::Succeeded {
            BTreeMap::from([
                (texts.text("hosts"), texts.text("12")),
                ("note".to_owned(), String::new()),
            ])
        } else {
            BTreeMap::new()
        },
        log: LogSummary {
            records: if started { 18_204 } else { 0 },
            cut: (state == JobState::Failed).then_some(LogCut {
                record: 18_203,
                limit: 1 << 26,
            }),
        },
    }
}

pub(crate) fn explanation(texts: Texts) -> Explanation {
    Explanation {
        code: "no_runner_fits".to_owned(),
        message: texts.text("no connected runner has the label `gpu`"),
        jobs: Vec::new(),
    }
}

fn steps(texts: Texts, state: JobState) -> Vec<Step> {
    let first = Step {
        name: None,
        index: 0,
        status: StepStatus::Succeeded,
        outcome: Some(StepOutcome::Succeeded),
        exit_code: Some(0),
        error: None,
        started_at: Some(ago(252)),
        finished_at: Some(ago(249)),
    };
    let (status, outcome, exit_code) = match state {
        JobState::Running => (StepStatus::Running, None, None),
        JobState::Failed => (StepStatus::Failed, Some(StepOutcome::Failed), Some(3)),
        JobState::Cancelled => (StepStatus::Cancelled, Some(StepOutcome::Cancelled), None),
        _ => (StepStatus::Succeeded, Some(StepOutcome::Succeeded), Some(0)),
    };
    let second = Step {
        name: Some(texts.text("probe_all")),
        index: 1,
        status,
        outcome,
        exit_code,
        error: (state == JobState::Cancelled).then(|| texts.text("stopped")),
        started_at: Some(ago(249)),
        finished_at: state.is_terminal().then(|| ago(12)),
    };
    vec![first, second]
}

pub(crate) fn artifact(texts: Texts) -> Artifact {
    Artifact {
        id: id(70),
        name: texts.text("hosts"),
        size: 1_258_291,
        sha256: "ab".repeat(32),
        content_digest: texts.text("4f1c"),
        created_at: ago(11),
        expires_at: Some(now() + TimeDelta::days(30)),
        removed: None,
        left_out: Some(LeftOut {
            files: vec![LeftOutFile {
                name: texts.text("hosts/latest"),
                reason: texts.text("is a link to nothing"),
            }],
            more: 2,
        }),
    }
}

pub(crate) fn removed(texts: Texts) -> Artifact {
    Artifact {
        name: texts.text("old"),
        expires_at: None,
        removed: Some(Removed {
            at: ago(5),
            code: "expired".to_owned(),
            message: texts.text("it has expired"),
            actor: texts.text("everscand"),
        }),
        ..artifact(texts)
    }
}

pub(crate) fn clause(texts: Texts) -> Clause {
    let leaf = Clause {
        text: texts.text("scans.hosts.has_diff()"),
        value: Some(true.into()),
        jobs: BTreeMap::from([(
            texts.text("hosts"),
            vec![id(2).to_string(), texts.text("no id")],
        )]),
        more_jobs: 3,
        ..Clause::default()
    };
    let failed = Clause {
        text: texts.text("vars.PAUSED"),
        error: Some(texts.text("no such key")),
        ..Clause::default()
    };
    let skipped = Clause {
        text: texts.text("inputs.x"),
        ..Clause::default()
    };
    let text = Clause {
        text: texts.text("vars.MODE"),
        value: Some(texts.text("fast").into()),
        ..Clause::default()
    };
    let no = Clause {
        text: texts.text("scans.ports.is_available()"),
        value: Some(false.into()),
        ..Clause::default()
    };
    Clause {
        text: "&&".to_owned(),
        value: Some(false.into()),
        parts: vec![leaf, failed, no, skipped, text],
        ..Clause::default()
    }
}

pub(crate) fn ledger(texts: Texts) -> Vec<LedgerRecord> {
    let evaluation = Evaluation {
        clause: clause(texts),
        scans: BTreeMap::new(),
    };
    let not_made = LedgerOutcome::NotMade {
        code: "expression_false".to_owned(),
        message: texts.text("its expression is false"),
    };
    let record = |seconds, cause, outcome| LedgerRecord {
        at: ago(seconds),
        cause,
        evaluation: Some(evaluation.clone()),
        outcome,
    };
    let success = LedgerCause::Success {
        scan: texts.text("hosts"),
        job: id(2),
    };
    let (first, last) = (ago(9_000), ago(900));
    vec![
        record(260, success, LedgerOutcome::Made { job: id(3) }),
        record(
            900,
            LedgerCause::Repeats {
                first,
                last,
                count: 34,
            },
            not_made.clone(),
        ),
        record(
            950,
            LedgerCause::Slots {
                first,
                last,
                count: 2,
                schedule: None,
            },
            not_made.clone(),
        ),
        record(
            960,
            LedgerCause::Slots {
                first,
                last,
                count: 1,
                schedule: Some(texts.text("0 12 * * 6")),
            },
            LedgerOutcome::Made { job: id(4) },
        ),
        record(970, LedgerCause::Clock { cursor: now() }, not_made),
        record(
            980,
            LedgerCause::Claim { job: id(5) },
            LedgerOutcome::Skipped {
                job: id(5),
                code: "expression_false".to_owned(),
                message: texts.text("its expression is false"),
            },
        ),
    ]
}
