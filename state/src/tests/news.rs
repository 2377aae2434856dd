//! Tests that processed successes are restored from their file, and that the loss of the file is noticed.

use std::fs;

use model::{JobId, ScanHead};

use super::fixture::{Fleet, Folder, Opened};
use super::fsck::findings;
use super::repair::repaired;
use crate::fsck::Code;
use crate::layout::Layout;

/// The scan `reader` processes the artifact of `build`.
pub(super) const WATCHING: &str = "
scans:
  build:
    on: {dispatch: {}}
    steps: [{run: make}]
    artifacts: [{name: report, paths: [r]}]
  reader:
    on: {dispatch: {}, expr: \"scans.build.has_news('report')\"}
    steps: [{run: work}]
";

/// A state whose `reader` has processed a success of `build`. Returns this success too.
pub(super) async fn watching(folder: &mut Folder) -> (Opened, Fleet, JobId) {
    let opened = folder.open().await;
    let workflow = opened.activate("watching", WATCHING).await;
    let runner = opened.register("one").await;
    let fleet = Fleet { workflow, runner };
    let job = process(&opened, fleet).await;
    (opened, fleet, job)
}

/// Lets the reader process a new success of `build`. Returns the success.
pub(super) async fn process(opened: &Opened, fleet: Fleet) -> JobId {
    let job = built(opened, fleet).await;
    let reader = reader(opened, fleet).unwrap();
    opened.claim(fleet, reader).await;
    opened.complete(reader).await;
    job
}

/// A new success of `build`, always with the same artifact.
pub(super) async fn built(opened: &Opened, fleet: Fleet) -> JobId {
    let job = opened.running_job(fleet, "build").await;
    opened.store_artifact(job, "report", "zip").await;
    opened.complete(job).await;
    job
}

fn reader(opened: &Opened, fleet: Fleet) -> Option<JobId> {
    let reader = fleet.scan("reader");
    opened
        .state
        .read(|world| world.jobs_of(&reader).next().map(|job| job.id))
}

fn processed(head: &ScanHead) -> Vec<(String, JobId)> {
    let entries = head.processed.iter();
    entries
        .map(|(scan, processed)| (scan.to_string(), processed.success))
        .collect()
}

#[tokio::test]
async fn processed_successes_are_restored_from_their_file_even_without_the_head() {
    let mut folder = Folder::new();
    let (opened, fleet, job) = watching(&mut folder).await;
    let head = opened.head(fleet, "reader");
    assert_eq!(processed(&head), [("build".to_owned(), job)]);
    assert_eq!(head.processed["build"].digests["report"], "d1");
    opened.close();

    let opened = folder.open().await;
    assert_eq!(opened.head(fleet, "reader"), head);
    built(&opened, fleet).await;
    assert_eq!(
        reader(&opened, fleet),
        None,
        "the same artifact counts as news"
    );
    opened.close();
    assert_eq!(findings(&folder), []);

    fs::remove_file(folder.path(&Layout::head(&fleet.scan("reader")))).unwrap();
    folder.remove_index();
    let opened = folder.open().await;
    let rebuilt = opened.head(fleet, "reader");
    assert_eq!(rebuilt.processed, head.processed);
    assert!(rebuilt.has_processed);
    opened.close();
}

#[tokio::test]
async fn without_its_file_nothing_counts_as_processed_and_fsck_reports_the_loss() {
    let mut folder = Folder::new();
    let (opened, fleet, _) = watching(&mut folder).await;
    opened.close();
    let digests = Layout::digests(&fleet.scan("reader"));
    fs::remove_file(folder.path(&digests)).unwrap();
    folder.remove_index();
    let found = findings(&folder);
    let [finding] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(
        (finding.code, finding.path.as_str()),
        (Code::RecordMissing, digests.as_str())
    );

    let opened = folder.open().await;
    assert_eq!(processed(&opened.head(fleet, "reader")), []);
    // The same content is news again: it is better to process it twice than never.
    let job = built(&opened, fleet).await;
    let made = reader(&opened, fleet).unwrap();
    opened.claim(fleet, made).await;
    opened.complete(made).await;
    let head = opened.head(fleet, "reader");
    assert_eq!(processed(&head), [("build".to_owned(), job)]);
    opened.close();
    assert_eq!(findings(&folder), []);

    fs::write(folder.path(&digests), "{").unwrap();
    let reported = repaired(&folder, false).await;
    assert!(!reported.found.is_empty());
    assert_eq!(reported.left, []);
    assert_eq!(findings(&folder), []);
    let opened = folder.open().await;
    assert_eq!(processed(&opened.head(fleet, "reader")), []);
    opened.close();
}
