//! Tests that heads stay small and that records next to them are restored.

use std::collections::BTreeMap;
use std::fs;

use model::{
    EndState, Ended, Failing, Failure, Hops, JobId, ScanHead, Succeeded, Success, TailEnd,
    Timestamp, Totals,
};
use serde_json::json;

use super::fixture::Folder;
use crate::envelope::{Stamp, seal};
use crate::layout::Layout;

/// A head with its longest numbers.
fn widest(name: &str) -> ScanHead {
    let job: JobId = "0198c5f2-7c1e-7000-8000-000000000000".parse().unwrap();
    let order = serde_json::from_value(json!(u64::from(u32::MAX))).unwrap();
    let at = Timestamp::from_timestamp_nanos(1_795_176_000_123_456_789);
    let tail = TailEnd {
        page: 1_000_000,
        bytes: 1_000_000,
    };
    let success = Success {
        job,
        order,
        artifacts: 100,
        hops: Hops::default(),
        digests: BTreeMap::new(),
    };
    let workflow = "0198c5f2-7c1e-7000-8000-000000000000".parse().unwrap();
    ScanHead {
        latest_job: job,
        latest_claim: Some(order),
        totals: Totals {
            succeeded: 1_000_000_000,
            failed: 1_000_000_000,
            cancelled: 1_000_000_000,
            skipped: 1_000_000_000,
            bytes: 1 << 50,
        },
        successes: vec![success.clone(), success],
        succeeded: Some(Succeeded {
            job,
            at,
            took: 1_000_000,
            since: Some(at),
        }),
        ended: Some(Ended {
            at,
            state: EndState::Succeeded,
        }),
        failure: Some(Failure {
            job,
            order,
            hops: Hops::default(),
        }),
        failing: Some(Failing {
            job,
            failures: 1_000_000_000,
        }),
        has_processed: true,
        history: tail,
        cron_cursor: Some(at),
        considered: Some(order),
        ledger: tail,
        ..ScanHead::new(workflow, name.parse().unwrap())
    }
}

#[test]
fn the_file_of_a_head_has_at_most_one_and_a_half_kibibytes() {
    let stamp = Stamp {
        revision: 1_000_000_000,
        sequence: store::Seq(1_000_000_000),
        clock: None,
    };
    for name in ["a".to_owned(), "n".repeat(40)] {
        let bytes = seal(&widest(&name), stamp).unwrap();
        // A head is written at every claim and end of a job, and all heads are in memory.
        assert!(bytes.len() <= 1_536, "{} bytes of {name}", bytes.len());
    }
}

#[tokio::test]
async fn digests_are_restored_from_their_file_or_from_the_jobs() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let scan = fleet.scan("build");
    for _ in 0..3 {
        let job = opened.running_job(fleet, "build").await;
        opened.store_artifact(job, "report", "zip").await;
        opened.complete(job).await;
    }
    let head = opened.head(fleet, "build");
    assert_eq!(head.successes[0].digests["report"], "d1");
    opened.close();

    let opened = folder.open().await;
    assert_eq!(opened.head(fleet, "build"), head);
    opened.close();

    fs::remove_file(folder.path(&Layout::digests(&scan))).unwrap();
    folder.remove_index();
    let opened = folder.open().await;
    assert_eq!(opened.head(fleet, "build"), head);
    opened.close();
}
