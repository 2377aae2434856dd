//! Expressions that read jobs, and the ledger that says what they read.

use std::fs;

use model::{Cause, Outcome, Reason};

use super::fixture::{Fleet, Folder, Opened, WATCHING};
use crate::DamagedLines;
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
async fn a_success_that_was_considered_is_not_considered_again_after_a_restart() {
    let mut folder = Folder::new();
    let (opened, fleet) = watching(&mut folder).await;
    succeed(&opened, fleet).await;
    opened.close();
    let opened = folder.open().await;
    assert!(opened.state.read(|world| world.unseen().is_empty()));
    opened.close();
}

#[tokio::test]
async fn a_ledger_goes_on_behind_what_was_damaged_or_lost() {
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
    assert_eq!(ledger.records.len(), 1, "the damaged line is left out");
    let file = Layout::ledger(&announce, 0).to_string();
    assert_eq!(ledger.damaged, [DamagedLines { file, lines: 1 }]);
    opened.close();
    let next = folder.path(&Layout::ledger(&announce, 1));
    assert_eq!(fs::read_to_string(next).unwrap().lines().count(), 1);
}
