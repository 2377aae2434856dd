//! How a record looks on disk. A change here is a change of the format: old records must go on being read.

use super::fixture::{Folder, completion, line};
use crate::layout::Layout;

#[tokio::test]
async fn the_records_of_a_job_are_written_as_ever() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    folder.advance(1_500);
    opened
        .state
        .logs()
        .append(job, 0, vec![line("hello")])
        .await
        .unwrap();
    opened.state.complete(completion(job, 1)).await.unwrap();
    opened.close();
    let text = |key: store::Key| std::fs::read_to_string(folder.root().join(key.as_str())).unwrap();
    assert_eq!(text(Layout::job(job)), include_str!("record/job.json"));
    assert_eq!(text(Layout::log(job)), include_str!("record/log.jsonl"));
    let scan = fleet.scan("build");
    assert_eq!(text(Layout::head(&scan)), include_str!("record/head.json"));
    assert_eq!(
        text(Layout::history(&scan, 0)),
        include_str!("record/history.jsonl")
    );
}

#[tokio::test]
async fn the_values_of_a_project_are_written_as_ever() {
    let (folder, opened, _) = Folder::prepared().await;
    let project = opened.set_values().await;
    opened.close();
    let text = |key: store::Key| std::fs::read_to_string(folder.root().join(key.as_str())).unwrap();
    assert_eq!(
        text(Layout::vars(project)),
        include_str!("record/vars.json")
    );
    assert_eq!(
        text(Layout::secrets(project)),
        include_str!("record/secrets.json")
    );
}
