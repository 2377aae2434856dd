//! Tests that each commit of a person has its line in the audit log.

use super::histories::{NeedsHistory, scan};
use super::*;

impl Bench {
    /// The lines of the audit log.
    async fn audit_log(&self) -> Vec<serde_json::Value> {
        let mut engine = self.store.engine();
        engine.open(&mut |_| {}).await.unwrap();
        let day = Layout::audit("2026-11-20".parse().unwrap());
        let log = engine.reader().get(&day).await.unwrap().unwrap();
        let lines = log.split(|byte| *byte == b'\n');
        lines
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }
}

#[tokio::test]
async fn the_audit_log_has_only_lines_of_committed_changes() {
    let mut bench = Bench::new();
    bench.store.inject(Injected::Full);
    let request = || Some(somebody());
    let lost = bench.submit_for(request(), configure("a"));
    bench.start().await;
    assert!(matches!(lost.await.unwrap(), Err(SubmitError::DiskFull)));
    for name in ["b", "c"] {
        bench
            .submit_for(request(), configure(name))
            .await
            .unwrap()
            .unwrap();
    }
    let refused = DropSource { name: source("a") };
    let refused = bench.submit_for(request(), refused).await.unwrap();
    assert!(refused.is_err());
    assert_eq!(bench.audit_log().await.len(), 2);
}

/// All commands are decided again, and each line matches the new decision.
#[tokio::test]
async fn a_change_has_its_line_even_after_the_store_refused_a_shared_batch() {
    let mut bench = Bench::new();
    bench.store.inject(Injected::TooLarge);
    let request = somebody();
    let first = bench.submit_for(Some(request.clone()), create_token());
    let second = bench.submit_for(Some(request), create_token());
    let other = bench.submit_for(Some(somebody()), configure("a"));
    bench.start().await;
    let made = [
        first.await.unwrap().unwrap(),
        second.await.unwrap().unwrap(),
    ];
    other.await.unwrap().unwrap();
    let log = bench.audit_log().await;
    let ids = made.iter().map(|made| {
        serde_json::json!([{
            "kind": "token_created", "id": made.token.id, "name": "one", "scopes": ["admin"],
        }])
    });
    let named: Vec<_> = log.iter().map(|line| line["actions"].clone()).collect();
    assert_eq!(named[..2], ids.collect::<Vec<_>>());
    assert_eq!(named.len(), 3, "{log:?}");
}

#[tokio::test]
async fn a_request_whose_first_command_is_refused_has_its_line_in_its_next_commit() {
    let mut bench = Bench::new();
    let request = somebody();
    let large =
        bench.submit_with(
            Some(request.clone()),
            configure("a"),
            Box::new(|_, batch| {
                batch.deletes.extend((0..BATCH_OPERATIONS).map(|day| {
                    Layout::audit(chrono::NaiveDate::MIN + chrono::Days::new(day as u64))
                }));
            }),
        );
    let refused = bench.submit_for(Some(request.clone()), DropSource { name: source("b") });
    let made = bench.submit_for(Some(request.clone()), create_token());
    let unchanged = bench.submit_for(Some(request), NeedsHistory(scan()));
    bench.start().await;
    assert!(matches!(large.await.unwrap(), Err(SubmitError::TooLarge)));
    assert!(matches!(
        refused.await.unwrap(),
        Err(SubmitError::Refused(_))
    ));
    made.await.unwrap().unwrap();
    unchanged.await.unwrap().unwrap();
    let log = bench.audit_log().await;
    assert_eq!(log.len(), 1, "{log:?}");
    assert_eq!(log[0]["name"], "somebody");
}
