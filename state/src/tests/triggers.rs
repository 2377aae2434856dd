//! Tests expressions that use jobs, and the ledger of their evaluations.

use std::collections::BTreeMap;
use std::fs;

use model::{
    Cause, Outcome, ProjectId, Reason, RevisionId, RevisionRef, SourceName, Timestamp, WorkflowId,
    WorkflowRecord, WorkflowStatus,
};
use store::Seq;
use store::limits::BATCH_BYTES;
use workflow::limits::TRIGGERS_BYTES;
use workflow::{Scan, TemplatePolicy, Workflow};

use super::fixture::{Fleet, Folder, Opened, WATCHING};
use crate::DamagedLines;
use crate::envelope::{Stamp, seal};
use crate::layout::Layout;

async fn watching(folder: &mut Folder) -> (Opened, Fleet) {
    let opened = folder.open().await;
    let workflow = opened.activate("watching", WATCHING).await;
    let runner = opened.register("one").await;
    (opened, Fleet { workflow, runner })
}

async fn succeed(opened: &Opened, fleet: Fleet) {
    let job = opened.running_job(fleet, "build").await;
    opened.complete(job).await;
}

fn waiting(opened: &Opened, fleet: Fleet) -> usize {
    let announce = fleet.scan("announce");
    opened.state.read(|world| world.jobs_of(&announce).count())
}

/// Validation counts the bytes of triggers. Even with the longest times, the count is at most one percent too high.
#[test]
fn the_largest_number_of_triggers_fits_into_the_record() {
    const SCHEDULE: &str = "cron: '*/5 0-23 * * *', timezone: America/Argentina/ComodRivadavia";
    let scan = |number: usize| {
        let read = usize::from(number == 0);
        let method = ["is_available", "has_news"][number % 2];
        let expr = format!("scans.s{read:05}.{method}() && vars.A != '\\\"Zoë\\\"'");
        format!("  s{number:05}: {{on: {{{SCHEDULE}, expr: \"{expr}\"}}, steps: [{{run: ls}}]}}\n")
    };
    let parse = |count: usize| {
        let scans: String = (0..count).map(scan).collect();
        workflow::parse("a.yaml", &format!("scans:\n{scans}"), TemplatePolicy::Warn)
    };
    let bytes = |definition: &Workflow| definition.scans().map(Scan::trigger_bytes).sum::<usize>();
    let most = TRIGGERS_BYTES / (bytes(&parse(2).unwrap().workflow) / 2);
    assert!(parse(most + 1).is_err());
    let definition = parse(most).unwrap().workflow;

    let source: SourceName = "recon".parse().unwrap();
    let id = WorkflowId::derive(&source, "a");
    let record = WorkflowRecord {
        id,
        project: ProjectId::of_source(&source),
        source,
        name: "a".to_owned(),
        file: "workflows/a.yaml".to_owned(),
        status: WorkflowStatus::Active,
        revision: RevisionRef {
            id: RevisionId::derive(id, 1),
            number: 1,
            commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
        },
        armed: BTreeMap::new(),
        held: None,
    };
    let late = Timestamp::from_timestamp_nanos(1_795_176_000_123_456_789);
    let order = serde_json::from_value(u64::MAX.into()).unwrap();
    let stamp = Stamp {
        revision: 1,
        sequence: Seq(1),
        clock: None,
    };
    let sealed = seal(&record.rearmed(&definition, late, order), stamp).unwrap();
    let counted = bytes(&definition);
    assert!(
        (counted - counted / 100..counted + 1024).contains(&sealed.len()),
        "{}",
        sealed.len()
    );
    const { assert!(TRIGGERS_BYTES + 32 * 1024 <= BATCH_BYTES) };
}

#[tokio::test]
async fn an_expression_reads_jobs_that_ended_before_a_restart() {
    let mut folder = Folder::new();
    let (opened, fleet) = watching(&mut folder).await;
    succeed(&opened, fleet).await;
    assert_eq!(waiting(&opened, fleet), 0);
    opened.close();

    let opened = folder.open().await;
    succeed(&opened, fleet).await;
    assert_eq!(waiting(&opened, fleet), 1);
    let records = opened
        .state
        .ledger(&fleet.scan("announce"), None, None, 10)
        .await
        .unwrap()
        .records;
    let outcomes: Vec<_> = records.iter().map(|record| &record.outcome).collect();
    let [Outcome::Made { .. }, Outcome::NotMade { reason }] = outcomes.as_slice() else {
        panic!("{outcomes:?}");
    };
    assert_eq!(*reason, Reason::ExpressionFalse);
    assert!(matches!(records[0].cause, Cause::Success { .. }));
    opened.close();
}

#[tokio::test]
async fn a_restart_does_not_consider_a_success_again() {
    let mut folder = Folder::new();
    let (opened, fleet) = watching(&mut folder).await;
    succeed(&opened, fleet).await;
    opened.close();
    let opened = folder.open().await;
    assert!(opened.state.read(|world| world.unseen().is_empty()));
    opened.close();
}

#[tokio::test]
async fn a_ledger_continues_after_damage_and_loss() {
    let mut folder = Folder::new();
    let (opened, fleet) = watching(&mut folder).await;
    let announce = fleet.scan("announce");
    succeed(&opened, fleet).await;
    opened.close();
    let page = folder.path(&Layout::ledger(&announce, 0));
    fs::write(&page, "{\n").unwrap();

    let opened = folder.open().await;
    succeed(&opened, fleet).await;
    let ledger = opened
        .state
        .ledger(&announce, None, None, 10)
        .await
        .unwrap();
    assert_eq!(ledger.records.len(), 1, "the damaged line is not skipped");
    let file = Layout::ledger(&announce, 0).to_string();
    assert_eq!(ledger.damaged, [DamagedLines { file, lines: 1 }]);
    opened.close();
    let next = folder.path(&Layout::ledger(&announce, 1));
    assert_eq!(fs::read_to_string(next).unwrap().lines().count(), 1);
}
