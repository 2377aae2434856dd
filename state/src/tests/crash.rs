//! Tests the state after a crash.

use std::collections::{BTreeMap, BTreeSet};

use model::decide::Dispatch;
use model::{Inputs, JobId, WorkflowRecord};
use workflow::InputValue;

use super::fixture::{Folder, WORKFLOW, completion, line};
use super::picture::picture;
use crate::JobFilter;
use crate::layout::Layout;

#[tokio::test]
async fn concurrent_submitters_get_their_own_answers() {
    const SUBMITTERS: usize = 64;
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let before = opened.state.seq();
    let tasks: Vec<_> = (0..SUBMITTERS)
        .map(|number| {
            let note = InputValue::Text(number.to_string());
            let inputs = Inputs::Inline(BTreeMap::from([("note".to_owned(), note)]));
            let dispatch = Dispatch {
                inputs: inputs.clone(),
                ..opened.dispatch(fleet, "build")
            };
            let state = opened.state.clone();
            tokio::spawn(async move { (state.submit(dispatch).await.unwrap(), inputs) })
        })
        .collect();
    let mut answers: BTreeMap<JobId, Inputs> = BTreeMap::new();
    for task in tasks {
        let (job, inputs) = task.await.unwrap();
        let asked = opened
            .state
            .read(|world| world.job(job).unwrap().inputs.clone());
        assert_eq!(
            asked, inputs,
            "the answer belongs to another command or was sent before it was published"
        );
        assert!(
            answers.insert(job, inputs).is_none(),
            "two submitters got the same job"
        );
    }
    assert_eq!(answers.len(), SUBMITTERS);
    let rounds = opened.state.seq().0 - before.0;
    assert!(
        rounds < SUBMITTERS as u64,
        "{rounds} commits for {SUBMITTERS} submitters: no commit was shared"
    );
    opened.close();
    let opened = folder.open().await;
    for (job, inputs) in answers {
        assert_eq!(
            opened
                .state
                .read(|world| world.job(job).unwrap().inputs.clone()),
            inputs
        );
    }
}

#[tokio::test]
async fn acknowledged_changes_survive_a_crash() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let mut ended = Vec::new();
    for round in 0..5 {
        let job = opened.running_job(fleet, "build").await;
        opened.append(job, 0, vec![line("one"), line("two")]).await;
        opened.state.complete(completion(job, 2)).await.unwrap();
        ended.push(job);
        let waiting = opened.new_job(fleet, "check").await;
        let expected = opened.state.read(picture);

        let mut crashed = folder.crashed();
        let after = crashed.open().await;
        assert_eq!(after.state.read(picture), expected, "round {round}");
        assert!(after.state.read(|world| world.job(waiting).is_some()));
        let page = after.state.jobs(&filter("build"), None, 100).await.unwrap();
        let listed: Vec<_> = page.jobs.iter().rev().map(|job| job.id).collect();
        assert_eq!(listed, ended, "the jobs are not listed exactly once");
        for job in &ended {
            let (_, log) = after.state.logs().stream(*job, 0).next().await;
            assert_eq!(
                log.unwrap()
                    .unwrap()
                    .iter()
                    .filter(|byte| **byte == b'\n')
                    .count(),
                2
            );
        }
        let next = after.running_job(fleet, "build").await;
        after.complete(next).await;
        assert_eq!(
            after.head(fleet, "build").totals.succeeded,
            ended.len() as u64 + 1
        );
        after.close();
    }
}

#[tokio::test]
async fn the_end_of_a_log_is_stored_in_the_completing_commit() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    let receipt = opened.append(job, 0, vec![line("last words")]).await;
    assert_eq!((receipt.received, receipt.durable), (1, 0));
    opened.state.complete(completion(job, 1)).await.unwrap();

    // The file was never synced: a power failure may leave it empty or missing.
    for left in [Some(&b""[..]), Some(&b"\0\0\0\0"[..]), None] {
        let mut crashed = folder.crashed();
        let log = crashed.path(&Layout::log(job));
        match left {
            Some(bytes) => std::fs::write(&log, bytes).unwrap(),
            None => std::fs::remove_file(&log).unwrap(),
        }
        let after = crashed.open().await;
        let (_, lines) = after.state.logs().stream(job, 0).next().await;
        let lines = String::from_utf8(lines.unwrap().unwrap().to_vec()).unwrap();
        assert!(lines.contains("last words"), "{lines}");
    }
}

#[tokio::test]
async fn jobs_can_end_after_their_history_was_removed() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let lost = opened.running_job(fleet, "build").await;
    opened.complete(lost).await;
    let job = opened.running_job(fleet, "build").await;
    opened.close();
    let history = Layout::history(&fleet.scan("build"), 0);
    std::fs::remove_file(folder.path(&history)).unwrap();

    let opened = folder.open().await;
    opened.complete(job).await;
    let page = opened.state.jobs(&filter("build"), None, 10).await.unwrap();
    assert_eq!(
        page.jobs.iter().map(|job| job.id).collect::<Vec<_>>(),
        [job]
    );
    assert_eq!(opened.head(fleet, "build").totals.succeeded, 2);
}

#[tokio::test]
async fn a_workflow_whose_record_is_lost_does_not_overwrite_its_revisions() {
    let changed = |number: u32| format!("{WORKFLOW}# {number}\n");
    for lost in [&["workflow"][..], &["workflow", "second revision"]] {
        for is_removed in [true, false] {
            let (mut folder, opened, fleet) = Folder::prepared().await;
            opened.activate("main", &changed(2)).await;
            let record = opened.workflow(fleet);
            opened.close();
            let mut paths = vec![Layout::workflow(fleet.workflow)];
            paths.extend(
                lost.contains(&"second revision")
                    .then(|| Layout::revision(fleet.workflow, &record.revision)),
            );
            for path in paths {
                let path = folder.path(&path);
                if is_removed {
                    std::fs::remove_file(path).unwrap();
                } else {
                    std::fs::write(path, "{}").unwrap();
                }
            }
            folder.remove_index();
            let before = folder.files();

            let opened = folder.open().await;
            let restored = opened.workflow(fleet);
            assert_eq!(restored.revision.number, 2);
            if lost == ["workflow"] {
                // The next poll sets `held` again, if needed.
                let known = WorkflowRecord {
                    held: None,
                    ..WorkflowRecord::clone(&record)
                };
                assert_eq!(*restored, known);
            }
            opened.activate("main", &changed(3)).await;
            assert_eq!(opened.workflow(fleet).revision.number, 3);
            opened.close();
            let revisions = |files: &BTreeSet<String>| {
                let files = files.iter().filter(|file| file.ends_with("workflow.yaml"));
                files.count()
            };
            assert_eq!(revisions(&folder.files()), revisions(&before) + 1);
        }
    }
}

fn filter(scan: &str) -> JobFilter {
    JobFilter {
        scan: Some(super::fixture::scan_name(scan)),
        ..JobFilter::default()
    }
}
